"""`mirab.flask` gives back what is not to be counted: of a refused request, and by `deduct_when`."""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest
from flask import Flask, Response, abort, request, stream_with_context
from flask.testing import FlaskClient

import mirab
from mirab import ManualClock, StoreUnavailable, Unsupported
from mirab.flask import Limiter, RateLimitExceeded


class Site:
    """An app on a store, and a look at what its limits have counted."""

    def __init__(self, uri: str = "", **options: object) -> None:
        self.uri = uri or f"memory:{uuid.uuid4().hex}"
        self.app = Flask("site")
        self.clock = ManualClock(1_700_000_000_000_000)
        self.limiter = Limiter(
            lambda: "k",
            app=self.app,
            storage_uri=self.uri,
            clock=self.clock,
            **options,  # type: ignore[arg-type]
        )

    def route(self, path: str, view: Callable[[], object], *decorators: Callable[..., Any]) -> None:
        limited: Any = view
        for decorate in reversed(decorators):
            limited = decorate(limited)
        self.app.add_url_rule(path, path, limited)

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def codes(self, *paths: str) -> list[int]:
        return [self.client.get(path).status_code for path in paths]

    def used(self, name: str, key: str = "k", limit: str = "fixed_window: 5/hour from first") -> int:
        limits = f"{name}={limit}"
        return mirab.Limiter(limits, self.uri, clock=self.clock, on_store_failure="raise").peek(key).used


@pytest.fixture
def site(store_uri: str) -> Site:
    return Site(store_uri)


def status() -> tuple[str, int]:
    return "", int(request.args.get("status", "200"))


def failed(response: Response) -> bool:
    return response.status_code >= 400


def helped() -> str:
    return "helped"


# A refused request


def test_a_later_refusal_gives_back_what_earlier_limits_took(site: Site) -> None:
    limit = site.limiter.limit
    site.route(
        "/a",
        lambda: "",
        limit("one=5/hour; two=5/hour"),
        limit("costly=5/hour", cost=3),
        limit("gate=1/hour", key_func=lambda: "everybody"),
    )
    assert site.codes("/a") == [200]
    assert [site.used(name) for name in ("one", "two", "costly")] == [1, 1, 3]
    site.clock.advance(1)
    mirab.Limiter("costly=fixed_window: 5/hour from first", site.uri, clock=site.clock).reset("k")
    response = site.client.get("/a")
    assert response.status_code == 429
    assert response.headers["RateLimit"] == '"gate";r=0;t=3599'
    assert [site.used(name) for name in ("one", "two", "costly")] == [1, 1, 0]
    assert site.used("gate", "everybody", "fixed_window: 1/hour from first") == 1


def test_refused_requests_never_use_up_an_earlier_limit(site: Site) -> None:
    site.route(
        "/a",
        lambda: "",
        site.limiter.limit("mine=5/hour"),
        site.limiter.limit("gate=2/hour", key_func=lambda: "everybody"),
    )
    assert site.codes(*["/a"] * 12) == [200] * 2 + [429] * 10
    assert site.used("mine") == 2


@pytest.mark.parametrize("text", ["5/hour burst 5", "sliding_window: 5/hour", "sliding_log: 5/hour"])
def test_every_algorithm_gives_back(site: Site, text: str) -> None:
    site.route(
        "/a",
        lambda: "",
        site.limiter.limit(f"mine={text}"),
        site.limiter.limit("deny", key_func=lambda: "all"),
    )
    assert site.codes("/a", "/a", "/a", "/a", "/a", "/a", "/a") == [429] * 7
    assert site.used("mine", limit=text) == 0


def test_current_limits_of_a_refused_request(site: Site) -> None:
    site.route(
        "/a",
        lambda: "",
        site.limiter.limit("mine=5/hour"),
        site.limiter.limit("gate=1/hour", key_func=lambda: "everybody"),
    )
    seen: list[list[tuple[str, bool]]] = []

    @site.app.after_request
    def look(response: Response) -> Response:
        seen.append([(limit.limit.name, limit.breached) for limit in site.limiter.current_limits])
        return response

    site.codes("/a", "/a")
    assert seen == [[("mine", False), ("gate", False)], [("gate", True)]]


def test_an_error_in_the_middle_gives_back(site: Site) -> None:
    site.app.testing = True
    site.route(
        "/a",
        lambda: "",
        site.limiter.limit("mine=5/hour"),
        site.limiter.limit("5/minute", key_func=lambda: "x" * 70_000),
    )
    with pytest.raises(mirab.InvalidArgument):
        site.client.get("/a")
    assert site.used("mine") == 0


def test_a_function_below_the_view_gives_back_its_own(site: Site) -> None:
    everybody = site.limiter.limit("gate=1/hour", key_func=lambda: "everybody")
    helper = site.limiter.limit("helped=5/hour")(everybody(helped))
    site.route("/a", lambda: helper(), site.limiter.limit("mine=5/hour"))  # noqa: PLW0108
    assert site.codes("/a", "/a", "/a") == [200, 429, 429]
    # Each decorator of a function is a call of its own: only the refusing one takes back.
    assert (site.used("mine"), site.used("helped")) == (3, 3)


def test_a_refused_function_is_asked_again(site: Site) -> None:
    helper = site.limiter.limit("gate=1/hour")(helped)

    def view() -> str:
        try:
            return helper()
        except RateLimitExceeded:
            with pytest.raises(RateLimitExceeded):
                helper()
            site.clock.advance(3600)
            return helper() + " later"

    site.route("/a", view)
    assert [site.client.get("/a").text for _ in range(2)] == ["helped", "helped later"]


def test_a_refund_that_fails_leaves_the_429(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    settings = site.limiter._settings[site.app]

    def close_all() -> None:
        for limiter in settings._limiters.values():
            limiter.close()

    settings.store_answered = close_all  # type: ignore[method-assign]  # when it has been charged
    site.route("/b", lambda: "", site.limiter.limit("x=leaky_bucket: 1/hour queue 5"))
    queue = mirab.Limiter("x=leaky_bucket: 1/hour queue 5", site.uri, clock=site.clock)
    assert queue.acquire("k")
    with caplog.at_level(logging.WARNING, "mirab"):
        assert site.codes("/b") == [429]
    assert "stays counted" in caplog.text
    assert queue.peek("k", 0).used == 2


def test_parallel_requests_pass_no_more_than_the_limits(site: Site) -> None:
    site.route(
        "/a",
        lambda: "",
        site.limiter.limit("mine=50/hour"),
        site.limiter.limit("gate=7/hour", key_func=lambda: "everybody"),
    )
    with ThreadPoolExecutor(20) as pool:
        codes = list(pool.map(lambda _: site.client.get("/a").status_code, range(40)))
    assert codes.count(200) == 7
    assert site.used("mine", limit="fixed_window: 50/hour from first") == 7


def test_a_blocked_key_is_refused_by_every_limit(site: Site) -> None:
    site.route("/a", lambda: "", site.limiter.limit("mine=5/hour; two=9/hour"))
    control = mirab.Limiter("5/minute", site.uri, clock=site.clock)
    control.block("k", 90)
    seen: list[Any] = []

    @site.app.after_request
    def look(response: Response) -> Response:
        seen[:] = [site.limiter.current_limit, *site.limiter.current_limits]
        return response

    refusal = site.client.get("/a")
    assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "90")
    assert "blocked" in refusal.text
    assert [(it.limit.name, it.breached, it.remaining, it.reset_at - 1_700_000_000) for it in seen] == [
        ("mine", True, 0, 90),
        ("mine", True, 0, 90),
        ("two", True, 0, 90),
    ]
    control.unblock("k")
    assert site.codes("/a") == [200]


# deduct_when


def test_only_what_is_to_be_counted_is(site: Site) -> None:
    site.route("/a", status, site.limiter.limit("login=5/hour", deduct_when=failed))
    counted = site.client.get("/a?status=401")
    assert counted.headers["RateLimit"] == '"login";r=4;t=3600'
    free = site.client.get("/a")
    assert free.status_code == 200
    assert "RateLimit" not in free.headers
    assert site.used("login") == 1
    assert site.codes(*["/a?status=401"] * 5, "/a") == [401, 401, 401, 401, 429, 429]
    assert site.used("login") == 5


def test_limits_beside_it_count(site: Site) -> None:
    site.route(
        "/a", status, site.limiter.limit("all=5/hour"), site.limiter.limit("x=5/hour", deduct_when=failed)
    )
    response = site.client.get("/a")
    assert response.headers["RateLimit"] == '"all";r=4;t=3600'
    assert (site.used("all"), site.used("x")) == (1, 0)
    assert site.client.get("/a?status=500").headers["RateLimit"] == '"all";r=3;t=3600, "x";r=4;t=3600'


def test_defaults_and_application_limits(store_uri: str) -> None:
    site = Site(
        store_uri,
        application_limits=["app=5/hour"],
        application_limits_deduct_when=lambda response: response.status_code == 500,
        default_limits="mine=5/hour",
        default_limits_deduct_when=failed,
    )
    site.route("/a", status)
    site.codes("/a", "/a?status=404", "/a?status=500")
    assert (site.used("app"), site.used("mine")) == (1, 2)


def test_deduct_when_from_the_config() -> None:
    app = Flask("site")
    app.config.update(
        RATELIMIT_DEFAULT="1/hour",
        RATELIMIT_DEFAULTS_DEDUCT_WHEN=failed,
        RATELIMIT_APPLICATION="2/hour",
        RATELIMIT_APPLICATION_DEDUCT_WHEN=failed,
    )
    Limiter(lambda: "k", app=app)
    app.add_url_rule("/a", "a", status)
    client = app.test_client()
    assert [client.get(path).status_code for path in ("/a", "/a", "/a?status=404", "/a")] == [
        200,
        200,
        404,
        429,
    ]


def test_shared_limits_and_costs(site: Site) -> None:
    shared = site.limiter.shared_limit("x=5/hour", "s", deduct_when=failed, cost=2)
    site.route("/a", status, shared)
    site.route("/b", status, shared)
    assert site.codes("/a", "/b", "/a?status=404", "/b?status=404", "/a", "/b") == [
        200,
        200,
        404,
        404,
        429,
        429,
    ]
    assert site.used("x") == 4


def test_requests_at_the_same_time_pass_no_more_than_the_limit(site: Site) -> None:
    inside = threading.Barrier(3, timeout=20)

    def view() -> tuple[str, int]:
        inside.wait()
        return "", 401

    site.route("/a", view, site.limiter.limit("login=3/hour", deduct_when=failed))
    with ThreadPoolExecutor(20) as pool:
        codes = list(pool.map(lambda _: site.client.get("/a").status_code, range(20)))
    assert (codes.count(401), codes.count(429)) == (3, 17)
    assert site.used("login", limit="fixed_window: 3/hour from first") == 3


def test_a_reservation_counts_until_the_response_is_there(site: Site) -> None:
    used: list[int] = []

    def view() -> str:
        used.append(site.used("x"))
        return ""

    site.route("/a", view, site.limiter.limit("x=5/hour", deduct_when=lambda _: False))
    assert site.codes("/a", "/a", "/a", "/a", "/a", "/a", "/a") == [200] * 7
    assert used == [1] * 7
    assert site.used("x") == 0


def test_errors_and_aborts_are_responses(site: Site) -> None:
    def fails() -> NoReturn:
        raise LookupError

    site.route("/error", fails, site.limiter.limit("x=5/hour", deduct_when=failed))
    site.route("/abort", lambda: abort(403), site.limiter.limit("x=5/hour", deduct_when=failed))
    assert site.codes("/error", "/abort") == [500, 403]
    assert site.used("x") == 2


def test_an_error_that_leaves_the_app_is_given_back(site: Site) -> None:
    def fails() -> NoReturn:
        raise LookupError

    site.app.testing = True
    site.route("/a", fails, site.limiter.limit("x=5/hour", deduct_when=lambda _: True))
    with pytest.raises(LookupError):
        site.client.get("/a")
    assert site.used("x") == 0


def test_a_deduct_when_that_fails_is_asked_once_and_the_request_counts(site: Site) -> None:
    asked: list[int] = []

    def broken(response: Response) -> bool:
        asked.append(response.status_code)
        raise LookupError

    site.route("/a", lambda: "", site.limiter.limit("x=5/hour", deduct_when=broken))
    assert site.codes("/a") == [500]
    assert asked == [200]
    assert site.used("x") == 1


def test_a_refusal_is_no_reservation(site: Site) -> None:
    asked: list[int] = []

    def count(response: Response) -> bool:
        asked.append(response.status_code)
        return False

    site.route(
        "/a",
        lambda: "",
        site.limiter.limit("x=5/hour", deduct_when=count),
        site.limiter.limit("gate=1/hour", key_func=lambda: "everybody"),
    )
    assert site.codes("/a", "/a", "/a") == [200, 429, 429]
    assert asked == [200]


def test_a_function_that_is_called_while_the_response_streams(site: Site) -> None:
    helper = site.limiter.limit("x=5/hour", deduct_when=failed)(helped)

    def pieces() -> Iterator[str]:
        yield helper()

    site.route("/a", lambda: Response(stream_with_context(pieces())))
    with site.client.get("/a") as response:
        assert response.get_data() == b"helped"
    assert site.used("x") == 0


def test_places_are_held_whatever_the_response_says(site: Site) -> None:
    seats = "concurrency: 2 for 30s"
    site.route("/a", status, site.limiter.limit(f"seats={seats}; x=5/hour", deduct_when=failed))
    with site.client.get("/a"):
        assert (site.used("seats", limit=seats), site.used("x")) == (1, 0)
    assert site.used("seats", limit=seats) == 0


def test_a_leaky_bucket_cannot_be_given_back() -> None:
    site = Site()
    for text in ("leaky_bucket: 5/second", "5/minute; x=leaky_bucket: 5/second queue 3"):
        with pytest.raises(Unsupported, match="leaky_bucket"):
            site.limiter.limit(text, deduct_when=failed)
        with pytest.raises(Unsupported, match="leaky_bucket"):
            site.limiter.shared_limit(text, "s", deduct_when=failed)
    site.app.testing = True
    site.route("/a", lambda: "", site.limiter.limit(lambda: "leaky_bucket: 5/second", deduct_when=failed))
    with pytest.raises(Unsupported, match="leaky_bucket"):
        site.client.get("/a")


def test_a_store_that_fails_later_keeps_the_response(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    settings = site.limiter._settings[site.app]

    def view() -> str:
        for limiter in settings._limiters.values():
            limiter.close()
        return "seen"

    site.route("/a", view, site.limiter.limit("x=5/hour", deduct_when=failed))
    with caplog.at_level(logging.WARNING, "mirab"):
        response = site.client.get("/a")
    assert (response.status_code, response.text) == (200, "seen")
    assert "stays counted" in caplog.text
    assert site.used("x") == 1


def test_a_dead_store_that_is_swallowed_asks_nobody() -> None:
    site = Site("redis://127.0.0.1:1", swallow_errors=True, on_store_failure="raise")
    site.route("/a", status, site.limiter.limit("x=5/hour", deduct_when=lambda _: pytest.fail("asked")))
    assert site.codes("/a", "/a?status=404") == [200, 404]
    with pytest.raises(StoreUnavailable):
        site.used("x")
