"""The options of `mirab.flask`: what is supported works, what is not is an error."""

import logging
import socket

import pytest
from flask import Blueprint, Flask
from flask.views import View

from mirab import InvalidArgument, InvalidLimit, InvalidUri, MirabError, StoreUnavailable, Unsupported
from mirab._flask_settings import CONFIG, UNSUPPORTED
from mirab.flask import Limiter


def key() -> str:
    return "k"


def app_with(**config: object) -> Flask:
    app = Flask("site")
    app.config.update(config)
    app.add_url_rule("/a", "a", lambda: "")
    return app


def codes(app: Flask, count: int) -> list[int]:
    client = app.test_client()
    return [client.get("/a").status_code for _ in range(count)]


@pytest.fixture
def dead_uri() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"redis://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    "config",
    [
        {"RATELIMIT_DEFAULT": "2/minute"},
        {"RATELIMIT_DEFAULT": "2/minute; 3/hour"},
        {"RATELIMIT_APPLICATION": ["2/minute"]},
        {"RATELIMIT_DEFAULT": "2/minute", "RATELIMIT_STRATEGY": "fixed-window"},
        {"RATELIMIT_DEFAULT": "2/minute", "RATELIMIT_STRATEGY": "moving-window"},
        {"RATELIMIT_DEFAULT": "2/minute", "RATELIMIT_STRATEGY": "sliding-window-counter"},
        {"RATELIMIT_DEFAULT": "2/minute", "RATELIMIT_STRATEGY": "token-bucket"},
        {"RATELIMIT_DEFAULT": "2/minute", "RATELIMIT_STORAGE_URI": "memory://", "RATELIMIT_KEY_PREFIX": "x"},
        {"RATELIMIT_DEFAULT": "2/minute", "RATELIMIT_ENABLED": True},
        {"RATELIMIT_DEFAULT": "2/minute", "RATELIMIT_HEADER_RETRY_AFTER_VALUE": "delta-seconds"},
    ],
)
def test_config(config: dict[str, object]) -> None:
    app = app_with(**config)
    Limiter(key, app=app)
    assert codes(app, 3) == [200, 200, 429]


def test_an_argument_beats_the_config() -> None:
    app = app_with(RATELIMIT_DEFAULT="9/minute", RATELIMIT_HEADERS_ENABLED=True)
    Limiter(key, app=app, default_limits=["1/minute"], headers_enabled=False)
    assert codes(app, 2) == [200, 429]
    assert "X-RateLimit-Limit" not in app.test_client().get("/a").headers


def test_for_enabled_the_config_beats_the_argument() -> None:
    for enabled in (True, False):
        app = app_with(RATELIMIT_ENABLED=enabled)
        Limiter(key, app=app, default_limits=["1/minute"], enabled=not enabled)
        assert codes(app, 2) == [200, 429 if enabled else 200]


def test_enabled_can_be_switched() -> None:
    app = app_with()
    limiter = Limiter(key, app=app, default_limits=["1/minute"])
    assert codes(app, 2) == [200, 429]
    limiter.enabled = False
    response = app.test_client().get("/a")
    assert response.status_code == 200
    assert "RateLimit" not in response.headers
    limiter.enabled = True
    assert codes(app, 1) == [429]


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_what_is_flask_limiters_but_not_ours(name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        Limiter(key, **{name: None})  # type: ignore[arg-type]


def test_unknown_arguments() -> None:
    limiter = Limiter(key)
    with pytest.raises(TypeError, match="colour"):
        Limiter(key, colour="red")
    with pytest.raises(TypeError, match="colour"):
        limiter.limit("1/minute", colour="red")
    with pytest.raises(TypeError, match="colour"):
        limiter.shared_limit("1/minute", "s", colour="red")
    for name in ("meta_limits", "on_meta_breach"):
        with pytest.raises(Unsupported, match=name):
            limiter.limit("1/minute", **{name: None})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="key_func"):
        Limiter("k")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "config",
    [
        {"RATELIMIT_IN_MEMORY_FALLBACK": "1/minute"},
        {"RATELIMIT_KEY_FUNC": key},
        {"RATELIMIT_HEADER_LIMIT": "X-Limit"},
        {"RATELIMIT_DEFUALT": "1/minute"},
        {"RATELIMIT_HEADER_RETRY_AFTER_VALUE": "http-date"},
    ],
)
def test_unsupported_config(config: dict[str, object]) -> None:
    with pytest.raises(Unsupported):
        Limiter(key, app=app_with(**config))


def test_every_config_key_is_an_argument() -> None:
    limiter = Limiter(key)
    assert set(CONFIG) - {"enabled"} <= set(limiter._given)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"strategy": "fastest"}, InvalidArgument),
        ({"strategy": "sliding_log"}, InvalidArgument),
        ({"strategy": ["moving-window"]}, InvalidArgument),
        ({"max_hold": -1}, InvalidArgument),
        ({"max_hold": float("nan")}, InvalidArgument),
        ({"max_hold": float("inf")}, InvalidArgument),
        ({"max_hold": True}, InvalidArgument),
        ({"max_hold": "1"}, InvalidArgument),
        ({"max_hold": None}, InvalidArgument),
        ({"default_limits": "leaky_bucket: 2/second", "default_limits_deduct_when": bool}, Unsupported),
        ({"default_limits": "2/second", "default_limits_deduct_when": True}, InvalidArgument),
        ({"application_limits": "2/second", "application_limits_deduct_when": "ok"}, InvalidArgument),
        ({"on_store_failure": "sometimes"}, InvalidArgument),
        ({"instances": 0}, InvalidArgument),
        ({"instances": "2"}, InvalidArgument),
        ({"clock": 5}, InvalidArgument),
        ({"storage_uri": "memcached://127.0.0.1"}, InvalidUri),
        ({"storage_uri": "redis+cluster://127.0.0.1"}, Unsupported),
        ({"storage_uri": "redis://127.0.0.1", "storage_options": {"ssl": True}}, InvalidArgument),
        ({"retry_after": "http-date"}, Unsupported),
        ({"default_limits": ["5/fortnight"]}, InvalidLimit),
        ({"application_limits": "5/m"}, InvalidLimit),
        ({"application_limits": [5]}, InvalidLimit),
        ({"default_limits": ["5/minute", ""]}, InvalidLimit),
    ],
)
def test_bad_options(options: dict[str, object], error: type[MirabError]) -> None:
    with pytest.raises(error):
        Limiter(key, app=app_with(), **options)  # type: ignore[arg-type]


def test_a_bad_limit_is_an_error_where_it_is_written() -> None:
    limiter = Limiter(key)
    for text in ("", "5/fortnight", "-1/minute", "5", "5/minute;", "algorithm: 5/minute", "1.5/minute"):
        with pytest.raises(InvalidLimit):
            limiter.limit(text)
    with pytest.raises(InvalidLimit):
        limiter.limit(5)  # type: ignore[arg-type]


def test_what_cannot_be_decorated() -> None:
    limiter = Limiter(key)
    with pytest.raises(Unsupported, match="shop"):
        limiter.limit("1/minute")(Blueprint("shop", __name__))  # type: ignore[type-var]
    with pytest.raises(Unsupported, match="decorators"):
        limiter.limit("1/minute")(View)
    with pytest.raises(Unsupported, match="shop"):
        limiter.exempt(Blueprint("shop", __name__))  # type: ignore[type-var]
    with pytest.raises(InvalidArgument):
        limiter.limit("1/minute")("view")  # type: ignore[type-var]


def test_an_app_without_init_app_is_an_error() -> None:
    app = app_with()
    app.testing = True
    app.add_url_rule("/b", view_func=Limiter(key).limit("1/minute")(lambda: ""), endpoint="b")
    with pytest.raises(InvalidArgument, match="init_app"):
        app.test_client().get("/b")


def test_storage_options_go_into_the_uri(redis_uri: str) -> None:
    app = app_with()
    address = redis_uri.partition("?")[0]
    prefix = redis_uri.rpartition("=")[2]
    options = {"prefix": prefix, "socket_timeout": 5, "socket_connect_timeout": 5.0, "pool": 2}
    Limiter(key, app=app, default_limits=["1/minute"], storage_uri=address, storage_options=options)
    other = app_with()
    Limiter(
        key,
        app=other,
        default_limits=["1/minute"],
        storage_uri=redis_uri,
        storage_options={"prefix": "beaten"},
    )
    assert codes(app, 1) == [200]
    assert codes(other, 1) == [429]


def test_a_store_error_is_raised(dead_uri: str) -> None:
    app = app_with()
    Limiter(key, app=app, default_limits=["1/minute"], storage_uri=dead_uri, on_store_failure="raise")
    assert codes(app, 1) == [500]
    app.testing = True
    with pytest.raises(StoreUnavailable):
        app.test_client().get("/a")


def test_swallowed_errors_pass_and_are_logged_once(dead_uri: str, caplog: pytest.LogCaptureFixture) -> None:
    app = app_with()
    Limiter(
        key,
        app=app,
        default_limits=["1/minute"],
        storage_uri=dead_uri,
        on_store_failure="raise",
        swallow_errors=True,
    )
    with caplog.at_level(logging.INFO, "mirab"):
        assert codes(app, 3) == [200, 200, 200]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "RateLimit" not in app.test_client().get("/a").headers


def test_a_bad_key_is_never_swallowed() -> None:
    app = app_with()
    Limiter(lambda: "x" * 70_000, app=app, default_limits=["1/minute"], swallow_errors=True)
    assert codes(app, 1) == [500]
