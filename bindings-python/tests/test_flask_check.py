"""Options of `mirab.flask` that cannot be right are refused where they are written."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask

from mirab import InvalidArgument, InvalidLimit, InvalidUri, ManualClock, MirabError
from mirab.flask import Limiter


def key() -> str:
    return "k"


async def later() -> str:
    return "k"


class NotYet:
    """What a coroutine function returns, but that nobody misses."""

    def __await__(self) -> Iterator[None]:
        yield


def site(limit: Callable[[Limiter], Any]) -> tuple[Flask, Limiter]:
    app = Flask("site")
    limiter = Limiter(key, app=app, clock=ManualClock())
    app.add_url_rule("/a", "a", limit(limiter)(lambda: ""), methods=["GET", "POST", "PURGE"])
    return app, limiter


def codes(app: Flask, method: str, count: int) -> list[int]:
    client = app.test_client()
    return [client.open("/a", method=method).status_code for _ in range(count)]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("methods", ["GET", "get", ["GET", "PURGE"], ("get",), iter(["GET"])])
def test_methods_may_be_one(methods: Any, *, shared: bool) -> None:
    if shared:
        app, _ = site(lambda limiter: limiter.shared_limit("2/minute", "all", methods="GET"))
    else:
        app, _ = site(lambda limiter: limiter.limit("2/minute", methods=methods))
    assert codes(app, "GET", 3) == [200, 200, 429]
    assert codes(app, "POST", 3) == [200] * 3


@pytest.mark.parametrize("methods", [5, b"GET", [5], [], "", (), ["GET", ""], "GET, POST", [None]])
def test_methods_that_no_request_has(methods: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"methods .*: it must be a list of methods"):
        Limiter(key).limit("2/minute", methods=methods)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("key_func", 5),
        ("key_func", "k"),
        ("key_func", later),
        ("exempt_when", True),
        ("exempt_when", later),
        ("on_breach", "sorry"),
        ("deduct_when", 200),
        ("deduct_when", later),
        ("cost", "x"),
        ("cost", -1),
        ("cost", 1.5),
        ("cost", True),
        ("cost", None),
        ("cost", 2**53 + 1),
        ("cost", later),
        ("per_method", "no"),
        ("override_defaults", "no"),
        ("override_defaults", None),
        ("error_message", 5),
        ("error_message", b"sorry"),
        ("scope", 5),
        ("scope", b"a"),
        ("scope", "\ud800"),
    ],
)
def test_an_option_of_a_limit(option: str, value: Any, *, shared: bool) -> None:
    limiter = Limiter(key)
    options: dict[str, Any] = (
        {option: value} if option == "scope" or not shared else {option: value, "scope": "a"}
    )
    with pytest.raises(InvalidArgument) as caught:
        (limiter.shared_limit if shared else limiter.limit)("2/minute", **options)
    assert str(caught.value).startswith(f"{option} {value!r}: ")


def test_the_scope_of_a_shared_limit_is_one() -> None:
    with pytest.raises(InvalidArgument, match="scope None: it must be text"):
        Limiter(key).shared_limit("2/minute", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [5, None, b"5/minute", ["5/minute"]])
def test_a_value_of_a_limit(value: Any) -> None:
    with pytest.raises(InvalidLimit, match=r"limit .*: it must be text"):
        Limiter(key).limit(value)
    with pytest.raises(InvalidArgument, match=r"limit_value .* no coroutine function"):
        Limiter(key).limit(later)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", ["x", -1, 1.5, [1], None])
def test_a_cost_that_a_function_returns(made: Any) -> None:
    app, _ = site(lambda limiter: limiter.limit("2/minute", cost=lambda: made))
    app.testing = True
    with pytest.raises(
        InvalidArgument, match=r"the cost that <function .* returned, .*: it must be an integer"
    ):
        app.test_client().get("/a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit_value": lambda: ["5/minute"]}, "limit .* which <function .* returned: it must be text"),
        ({"limit_value": lambda: None}, "limit None, which <function .* returned: it must be text"),
        ({"limit_value": "1/minute", "scope": lambda _: 5}, "the scope that <function .* returned, 5"),
        ({"limit_value": "deny", "error_message": lambda: 5}, "the text that <function .* returned, 5"),
        ({"limit_value": "1/minute", "key_func": NotYet}, "the key that <class .* returned, "),
    ],
)
def test_what_a_function_returns(options: dict[str, Any], message: str) -> None:
    app, _ = site(lambda limiter: limiter.limit(**options))
    app.testing = True
    with pytest.raises((InvalidArgument, InvalidLimit), match=message):
        app.test_client().get("/a")


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("key_func", 5, InvalidArgument),
        ("key_func", None, InvalidArgument),
        ("key_func", later, InvalidArgument),
        ("default_limits", 5, InvalidLimit),
        ("default_limits", b"5/minute", InvalidLimit),
        ("default_limits", {"5/minute": 1}, InvalidLimit),
        ("default_limits", iter(["5/minute"]), InvalidLimit),
        ("application_limits", 5, InvalidLimit),
        ("default_limits_deduct_when", 5, InvalidArgument),
        ("application_limits_deduct_when", "x", InvalidArgument),
        ("headers_enabled", "x", InvalidArgument),
        ("headers_enabled", "false", InvalidArgument),
        ("storage_uri", 5, InvalidArgument),
        ("storage_options", "timeout_ms=5", InvalidArgument),
        ("storage_options", {5: 5}, InvalidArgument),
        ("strategy", 5, InvalidArgument),
        ("strategy", [], InvalidArgument),
        ("swallow_errors", "no", InvalidArgument),
        ("key_prefix", 5, InvalidArgument),
        ("key_prefix", b"x", InvalidArgument),
        ("key_prefix", "\ud800", InvalidArgument),
        ("enabled", "no", InvalidArgument),
        ("enabled", None, InvalidArgument),
        ("on_breach", "sorry", InvalidArgument),
        ("on_breach", later, InvalidArgument),
        ("retry_after", 5, InvalidArgument),
        ("clock", 5, InvalidArgument),
        ("on_store_failure", "sometimes", InvalidArgument),
        ("on_store_failure", None, InvalidArgument),
        ("instances", "2", InvalidArgument),
        ("max_hold", "1", InvalidArgument),
        ("max_hold", None, InvalidArgument),
        ("max_hold", float("nan"), InvalidArgument),
        ("app", 5, InvalidArgument),
    ],
)
def test_an_option_of_the_extension(option: str, value: Any, kind: type[MirabError]) -> None:
    with pytest.raises(kind) as caught:
        Limiter(**{"key_func": key, option: value})
    shown = value if option == "on_store_failure" and value else repr(value)
    assert str(caught.value).startswith((f"{option} {shown}: ", f'{option} "{shown}"', f"{option}={shown}: "))


@pytest.mark.parametrize("uri", [b"redis://u:s3cret@h", bytearray(b"s3cret"), "redis://u:s3cret@\udcff"])
def test_what_may_be_a_uri_is_not_shown(uri: Any) -> None:
    with pytest.raises((InvalidArgument, InvalidUri), match=r"^storage_uri") as caught:
        Limiter(key, storage_uri=uri)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"socket_timeout": "x"},
        {"socket_timeout": None},
        {"socket_timeout": float("nan")},
        {"socket_connect_timeout": float("inf")},
        {"timeout_ms": [5]},
        {"pool": True},
        {"prefix": "\ud800"},
    ],
)
def test_an_option_of_the_store(options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match=f"storage_options: {next(iter(options))} "):
        Limiter(key, app=Flask("site"), storage_uri="redis://127.0.0.1:1", storage_options=options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RATELIMIT_DEFAULT", 5),
        ("RATELIMIT_APPLICATION", b"5/minute"),
        ("RATELIMIT_ENABLED", "false"),
        ("RATELIMIT_HEADERS_ENABLED", "0"),
        ("RATELIMIT_SWALLOW_ERRORS", "no"),
        ("RATELIMIT_KEY_PREFIX", 5),
        ("RATELIMIT_STORAGE_URI", 5),
        ("RATELIMIT_STORAGE_OPTIONS", []),
        ("RATELIMIT_STRATEGY", 5),
        ("RATELIMIT_ON_BREACH_CALLBACK", "sorry"),
        ("RATELIMIT_DEFAULTS_DEDUCT_WHEN", 5),
    ],
)
def test_a_value_of_the_config(name: str, value: object) -> None:
    app = Flask("site")
    app.config[name] = value
    with pytest.raises((InvalidArgument, InvalidLimit)) as caught:
        Limiter(key, app=app)
    assert str(caught.value).startswith(f"{name} {value!r}: it must be ")


def test_none_in_the_config_is_nothing_given() -> None:
    app = Flask("site")
    app.config.update(RATELIMIT_ENABLED=None, RATELIMIT_STORAGE_URI=None, RATELIMIT_DEFAULT="2/minute")
    Limiter(key, app=app)
    app.add_url_rule("/a", "a", lambda: "")
    assert codes(app, "GET", 3) == [200, 200, 429]


@pytest.mark.parametrize("function", [5, later, None])
def test_a_filter_is_a_function(function: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"request_filter .*: it must be a function"):
        Limiter(key).request_filter(function)
