"""`mirab.flask` on a Flask app: what is counted, in which order, and what the client is told."""

import logging
import time
import uuid
from collections.abc import Callable

import pytest
from flask import Flask, Response, make_response, request
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from mirab import Limit, ManualClock
from mirab._flask_rule import STRATEGIES
from mirab.flask import Limiter, RateLimitExceeded, RequestLimit, get_remote_address

Get = Callable[..., TestResponse]


def user() -> str:
    return request.headers.get("x-user", "somebody")


class Site:
    """An app with a limiter on a manual clock, and a client."""

    def __init__(self, **options: object) -> None:
        self.app = Flask("site")
        self.app.testing = True
        self.clock = ManualClock(1_700_000_000_000_000)
        options.setdefault("clock", self.clock)
        self.limiter = Limiter(user, app=self.app, **options)  # type: ignore[arg-type]

    def route(
        self,
        path: str,
        *decorators: Callable[..., Callable[..., object]],
        methods: tuple[str, ...] = ("GET",),
    ) -> None:
        view: Callable[..., object] = lambda: f"hello from {path}"  # noqa: E731
        view.__name__ = path.strip("/") or "index"
        for decorate in reversed(decorators):
            view = decorate(view)
        self.app.add_url_rule(path, view_func=view, methods=list(methods))  # type: ignore[arg-type]

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def codes(self, *paths: str, **options: object) -> list[int]:
        return [self.client.open(path, **options).status_code for path in paths]  # type: ignore[arg-type]


def test_a_decorated_view_and_its_429() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("2/minute"))
    first = site.client.get("/a")
    assert (first.status_code, first.text) == (200, "hello from /a")
    assert first.headers["RateLimit-Policy"] == '"fixed_window: 2/minute from first";q=2;w=60'
    assert first.headers["RateLimit"] == '"fixed_window: 2/minute from first";r=1;t=60'
    assert "Retry-After" not in first.headers
    assert "X-RateLimit-Limit" not in first.headers
    site.clock.advance(0.5)
    site.client.get("/a")
    refusal = site.client.get("/a")
    assert refusal.status_code == 429
    assert refusal.headers["Retry-After"] == "60"
    assert refusal.headers["Cache-Control"] == "no-store"
    assert refusal.headers["RateLimit"] == '"fixed_window: 2/minute from first";r=0;t=60'
    assert "2/minute" in refusal.text
    site.clock.advance(59.5)
    assert site.codes("/a") == [200]


def test_the_default_is_a_fixed_window_from_the_first_request() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("2/minute"))
    assert site.codes("/a", "/a", "/a") == [200, 200, 429]
    site.clock.advance(30)  # half a minute gives a token bucket one back, a window nothing
    assert site.codes("/a") == [429]
    site.clock.advance(30)
    assert site.codes("/a", "/a", "/a") == [200, 200, 429]


@pytest.mark.parametrize("text", ["token_bucket: 2/minute", "2/minute burst 2", Limit.token_bucket(2, 60)])
def test_a_limit_with_an_algorithm_is_taken_as_written(text: str) -> None:
    site = Site()
    site.route("/a", site.limiter.limit(text))
    assert site.codes("/a", "/a", "/a") == [200, 200, 429]
    site.clock.advance(30)
    assert site.codes("/a", "/a") == [200, 429]


def test_the_token_bucket_strategy() -> None:
    site = Site(strategy="token-bucket")
    site.route("/a", site.limiter.limit("2/minute"))
    assert site.codes("/a", "/a", "/a") == [200, 200, 429]
    site.clock.advance(30)
    assert site.codes("/a", "/a") == [200, 429]


def test_the_moving_window_strategy_is_a_sliding_log() -> None:
    site = Site(strategy="moving-window")
    site.route("/a", site.limiter.limit("2/minute"))
    assert site.codes("/a") == [200]
    site.clock.advance(40)
    response = site.client.get("/a")
    assert response.headers["RateLimit-Policy"] == '"sliding_log: 2/minute";q=2;w=60'
    refusal = site.client.get("/a")
    assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "20")
    site.clock.advance(20)
    assert site.codes("/a", "/a") == [200, 429]


def test_the_sliding_window_counter_strategy_is_a_sliding_window() -> None:
    site = Site(strategy="sliding-window-counter")
    site.clock.set_us(0)
    site.route("/a", site.limiter.limit("4/minute"))
    assert site.codes("/a", "/a", "/a", "/a", "/a") == [200, 200, 200, 200, 429]
    site.clock.advance(90)  # half of the window before still counts: two of its four
    response = site.client.get("/a")
    assert response.headers["RateLimit-Policy"] == '"sliding_window: 4/minute";q=4;w=60'
    assert response.headers["RateLimit"].startswith('"sliding_window: 4/minute";r=1;')
    assert site.codes("/a", "/a") == [200, 429]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_written_in_full_is_the_same_under_every_strategy(strategy: str) -> None:
    site = Site(strategy=strategy)
    texts = [
        "fixed_window: 9/minute from first",
        "x=sliding_log: 9/minute buckets 6",
        "9/minute burst 20",
        "deny",
    ]
    site.route("/a", site.limiter.limit("; ".join(["9/minute from first", *texts[1:3], "0/minute"])))
    policy = site.client.get("/a").headers["RateLimit-Policy"]
    assert [part.split('"')[1] for part in policy.split(", ")] == [
        text.partition("=")[0] if "=" in text else text for text in texts
    ]


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("5 per minute", ["fixed_window: 5/minute from first"]),
        (
            "5/minute;10 per 2 hours",
            ["fixed_window: 5/minute from first", "fixed_window: 10/2hours from first"],
        ),
        ("1 per second, 2/minute | 3/hour", ["fixed_window: 1/second from first"] * 1),
        ("login=5/minute", ["login=fixed_window: 5/minute from first"]),
        ("fixed_window: 5/minute", ["fixed_window: 5/minute"]),
        ("5/minute from first", ["fixed_window: 5/minute from first"]),
        ("0/minute", ["deny"]),
        ("unlimited", ["unlimited"]),
        ("login=5/minute burst 9", ["login=5/minute burst 9"]),
    ],
)
def test_what_is_written_as_limits(text: str, limits: list[str]) -> None:
    site = Site()
    seen: list[str] = []

    def view() -> str:
        seen.extend(str(limit.limit) for limit in site.limiter.current_limits)
        return ""

    site.app.add_url_rule("/a", view_func=site.limiter.limit(text)(view))
    site.client.get("/a")
    expected = [str(Limit.parse(limit)) for limit in limits]
    assert seen[: len(expected)] == ([] if limits == ["deny"] else expected)


def test_zero_refuses_everything() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("0/minute"))
    refusal = site.client.get("/a")
    assert refusal.status_code == 429
    assert "Retry-After" not in refusal.headers


def test_routes_have_buckets_of_their_own() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("1/minute"))
    site.route("/b", site.limiter.limit("1/minute"))
    assert site.codes("/a", "/b", "/a", "/b") == [200, 200, 429, 429]


def test_users_have_buckets_of_their_own() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("1/minute"))
    assert site.codes("/a", "/a", headers={"x-user": "ann"}) == [200, 429]
    assert site.codes("/a", headers={"x-user": "bob"}) == [200]


def test_application_limits_are_for_all_routes_together() -> None:
    site = Site(application_limits=["3/minute"])
    site.route("/a")
    site.route("/b", site.limiter.limit("100/minute"))
    assert site.codes("/a", "/b", "/a", "/b", "/a") == [200, 200, 200, 429, 429]


def test_default_limits_are_for_each_route_without_its_own() -> None:
    site = Site(default_limits=["1/minute"])
    site.route("/a")
    site.route("/b")
    site.route("/own", site.limiter.limit("2/minute"))
    site.route("/both", site.limiter.limit("2/minute", override_defaults=False))
    assert site.codes("/a", "/b", "/a", "/b") == [200, 200, 429, 429]
    assert site.codes("/own", "/own", "/own") == [200, 200, 429]
    assert site.codes("/both", "/both") == [200, 429]


def test_a_refused_request_counts_nowhere() -> None:
    site = Site(application_limits=["10/hour"])
    site.route("/a", site.limiter.limit("1/minute; 5/day"))
    site.route("/b")
    assert site.codes("/a", "/a", "/a", "/a") == [200, 429, 429, 429]
    told = site.client.get("/b").headers["RateLimit"]
    assert told == '"fixed_window: 10/hour from first";r=8;t=3600'


def test_a_limit_on_another_key_is_decided_by_itself() -> None:
    site = Site()
    site.route(
        "/a", site.limiter.limit("5/minute"), site.limiter.limit("1/minute", key_func=lambda: "everybody")
    )
    assert site.codes("/a", headers={"x-user": "ann"}) == [200]
    refusal = site.client.get("/a", headers={"x-user": "bob"})
    assert refusal.status_code == 429
    assert refusal.headers["RateLimit"] == '"fixed_window: 1/minute from first";r=0;t=60'
    assert refusal.headers["Retry-After"] == "60"


def test_shared_limits() -> None:
    site = Site()
    shared = site.limiter.shared_limit("2/minute", scope="search")
    site.route("/a", shared)
    site.route("/b", shared)
    site.route("/c", site.limiter.shared_limit("2/minute", scope="search"))
    site.route("/d", site.limiter.shared_limit("2/minute", scope=lambda endpoint: endpoint))
    site.route("/search", site.limiter.limit("2/minute"))
    assert site.codes("/a", "/b", "/c", "/d", "/search") == [200, 200, 429, 200, 200]


def test_a_named_limit_is_one_bucket_for_all_routes() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("login=2/minute"))
    site.route("/b", site.limiter.limit("login=2/minute"))
    assert site.codes("/a", "/b", "/a") == [200, 200, 429]


def test_a_limit_written_twice_is_charged_once() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("2/minute"), site.limiter.limit("2/minute"))
    assert site.codes("/a", "/a", "/a") == [200, 200, 429]


def test_many_limits() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("; ".join(f"{count}/hour" for count in range(40, 20, -1))))
    response = site.client.get("/a")
    assert response.status_code == 200
    assert response.headers["RateLimit"].count("r=") == 20


def test_scope_method_and_cost() -> None:
    site = Site()
    site.route("/scope", site.limiter.limit("1/minute", scope=lambda _: request.args["part"]))
    site.route("/method", site.limiter.limit("1/minute", per_method=True), methods=("GET", "POST"))
    site.route("/post", site.limiter.limit("1/minute", methods=["post"]), methods=("GET", "POST"))
    site.route("/cost", site.limiter.limit("5/minute", cost=3))
    site.route("/asked", site.limiter.limit("5/minute", cost=lambda: int(request.args["cost"])))
    assert site.codes("/scope?part=1", "/scope?part=2", "/scope?part=1") == [200, 200, 429]
    assert site.codes("/method", "/method") == [200, 429]
    assert site.codes("/method", "/method", method="POST") == [200, 429]
    assert site.codes("/post", "/post", "/post") == [200, 200, 200]
    assert site.codes("/post", "/post", method="POST") == [200, 429]
    assert site.codes("/cost", "/cost") == [200, 429]
    assert site.codes("/asked?cost=4", "/asked?cost=2", "/asked?cost=1", "/asked?cost=9") == [
        200,
        429,
        200,
        429,
    ]


def test_who_is_let_through() -> None:
    site = Site(application_limits=["1/minute"], default_limits=["1/minute"])
    site.limiter.request_filter(lambda: request.headers.get("x-user") == "admin")
    site.route("/exempt", site.limiter.exempt)
    site.route("/when", site.limiter.limit("1/day", exempt_when=lambda: "free" in request.args))
    site.route("/a")
    assert site.codes("/exempt", "/exempt", "/exempt") == [200, 200, 200]
    assert site.codes("/a", "/a", "/a", headers={"x-user": "admin"}) == [200, 200, 200]
    assert site.codes("/missing", "/missing") == [404, 404]
    assert site.codes("/static/none.css", "/static/none.css") == [404, 404]
    assert site.codes("/a", "/a", method="OPTIONS") == [200, 200]
    assert site.codes("/when?free") == [200]
    assert site.codes("/a", "/exempt") == [429, 200]


def test_options_is_counted_where_it_is_named() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("1/minute", methods=["OPTIONS"]))
    assert site.codes("/a", "/a", method="OPTIONS") == [200, 429]


def test_a_limit_for_each_request() -> None:
    site = Site()
    site.route(
        "/a", site.limiter.limit(lambda: "2/minute" if request.headers["x-user"] == "pro" else "1/minute")
    )
    assert site.codes("/a", "/a", headers={"x-user": "free"}) == [200, 429]
    assert site.codes("/a", "/a", "/a", headers={"x-user": "pro"}) == [200, 200, 429]


def test_x_ratelimit_headers_are_replaced_never_appended() -> None:
    site = Site(headers_enabled=True, default_limits=["2/minute"])

    @site.app.get("/a")
    def view() -> Response:
        response = make_response("")
        response.headers["X-RateLimit-Limit"] = "999"
        response.headers["RateLimit"] = "999"
        return response

    response = site.client.get("/a")
    assert response.headers.getlist("X-RateLimit-Limit") == ["2"]
    assert response.headers["X-RateLimit-Remaining"] == "1"
    assert response.headers["X-RateLimit-Reset"] == "1700000060"
    assert len(response.headers.getlist("RateLimit")) == 1


def test_an_error_handler_sees_the_refusal() -> None:
    site = Site()
    site.route("/a", site.limiter.limit("1/minute", error_message="slow down"))
    site.route("/b", site.limiter.limit("deny", error_message=lambda: "not " + "here"))

    @site.app.errorhandler(429)
    def handler(error: RateLimitExceeded) -> tuple[dict[str, object], int]:
        told = error.limit
        return {
            "why": error.description,
            "limit": str(told.limit),
            "key": told.key,
            "left": told.remaining,
        }, 429

    site.client.get("/a")
    refusal = site.client.get("/a")
    assert refusal.json == {
        "why": "slow down",
        "limit": "fixed_window: 1/minute from first",
        "key": "somebody",
        "left": 0,
    }
    assert refusal.headers["Retry-After"] == "60"
    assert site.client.get("/b").json["why"] == "not here"  # type: ignore[index]


def test_on_breach() -> None:
    told: list[tuple[str, RequestLimit]] = []

    def everywhere(limit: RequestLimit) -> Response:
        told.append(("everywhere", limit))
        return make_response("from everywhere", 429)

    def here(limit: RequestLimit) -> Response:
        told.append(("here", limit))
        return make_response("from here", 418)

    site = Site(on_breach=everywhere)
    site.route("/a", site.limiter.limit("1/minute", on_breach=here))
    site.route("/b", site.limiter.limit("deny"))
    site.client.get("/a")
    assert told == []
    refusal = site.client.get("/a")
    assert (refusal.status_code, refusal.text, refusal.headers["Retry-After"]) == (418, "from here", "60")
    assert site.client.get("/b").text == "from everywhere"
    assert [place for place, _ in told] == ["everywhere", "here", "everywhere"]
    assert all(limit.breached for _, limit in told)
    assert told[0][1].window == (1_700_000_060, 0)


def test_current_limit() -> None:
    site = Site(application_limits=["5/minute"])
    seen: list[RequestLimit | None] = []

    def view() -> str:
        seen.append(site.limiter.current_limit)
        return str(len(site.limiter.current_limits))

    site.app.add_url_rule("/a", view_func=site.limiter.limit("3/minute")(view))
    site.app.add_url_rule(
        "/free", view_func=site.limiter.exempt(lambda: str(site.limiter.current_limit)), endpoint="f"
    )
    assert site.client.get("/a").text == "2"
    assert site.client.get("/free").text == "None"
    (limit,) = seen
    assert limit
    assert str(limit.limit) == "fixed_window: 3/minute from first"
    assert (limit.key, limit.remaining, limit.breached, limit.shared) == ("somebody", 2, False, False)
    assert limit.decision.allowed


def test_a_decorated_function_below_the_view() -> None:
    site = Site()

    @site.limiter.limit("1/minute")
    def helper() -> str:
        return "helped"

    site.app.add_url_rule("/a", "a", lambda: helper() + helper())
    site.app.add_url_rule("/b", "b", lambda: helper())  # noqa: PLW0108
    assert site.codes("/a", "/a", "/b") == [200, 429, 429]


def test_a_decorator_without_wraps_above_the_limit() -> None:
    site = Site(default_limits=["5/minute"])

    def opaque(view: Callable[[], str]) -> Callable[[], str]:
        def inner() -> str:
            return view()

        return inner

    site.app.add_url_rule("/a", view_func=opaque(site.limiter.limit("1/minute")(lambda: "")), endpoint="a")
    assert site.codes("/a", "/a") == [200, 429]


def test_a_class_view() -> None:
    from flask.views import MethodView  # noqa: PLC0415

    site = Site()

    class Thing(MethodView):
        decorators = [site.limiter.limit("1/minute")]  # noqa: RUF012 - as Flask has it

        def get(self) -> str:
            return "thing"

    site.app.add_url_rule("/a", view_func=Thing.as_view("thing"))
    assert site.codes("/a", "/a") == [200, 429]


def test_without_a_key_one_bucket_is_shared(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    site.route("/a", site.limiter.limit("2/minute", key_func=lambda: request.headers.get("x-api-key")))
    with caplog.at_level(logging.WARNING, "mirab"):
        assert site.codes("/a", headers={"x-api-key": ""}) == [200]
        assert site.codes("/a", "/a") == [200, 429]
    assert len(caplog.records) == 1
    assert "anonymous" in caplog.text
    assert site.codes("/a", headers={"x-api-key": "k"}) == [200]


def test_key_functions_are_asked_once_a_request() -> None:
    asked: list[int] = []

    def key() -> int:
        asked.append(1)
        return 42

    app = Flask("site")
    limiter = Limiter(key, app=app, application_limits=["5/minute"], default_limits=["4/minute"])  # type: ignore[arg-type]
    app.add_url_rule(
        "/a", view_func=limiter.limit("3/minute; 2/minute", override_defaults=False)(lambda: ""), endpoint="a"
    )
    assert app.test_client().get("/a").status_code == 200
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
    ],
)
def test_get_remote_address(address: str, key: str) -> None:
    with Flask("site").test_request_context(environ_base={"REMOTE_ADDR": address}):
        assert get_remote_address() == key


def test_requests_in_one_app_context_are_different_requests() -> None:
    site = Site(default_limits=["1/minute"])
    site.route("/a")
    with site.app.app_context():
        assert site.codes("/a", "/a") == [200, 429]


def test_two_limiters_on_one_app() -> None:
    site = Site()
    other = Limiter(lambda: "all", app=site.app, clock=site.clock)
    site.route("/a", site.limiter.limit("2/minute"), other.limit("1/minute"))
    assert site.codes("/a", "/a") == [200, 429]


def test_one_limiter_on_two_apps() -> None:
    limiter = Limiter(user, default_limits=["1/minute"])
    for name in ("one", "two"):
        app = Flask(name)
        limiter.init_app(app)
        limiter.init_app(app)
        assert limiter in app.extensions["limiter"]
        app.add_url_rule("/a", view_func=lambda: "", endpoint="a")
        codes = [app.test_client().get("/a").status_code for _ in range(2)]
        assert codes == [200, 429]


def test_real_time() -> None:
    site = Site(clock=None)
    site.route("/a", site.limiter.limit("1/second"))
    assert site.codes("/a", "/a") == [200, 429]
    time.sleep(1.01)
    assert site.codes("/a") == [200]


def test_two_apps_share_a_redis(redis_uri: str) -> None:
    clock = ManualClock(1)
    sites = [Site(storage_uri=redis_uri, application_limits=["3/minute"], clock=clock) for _ in range(2)]
    for site in sites:
        site.route("/a")
    assert sites[0].codes("/a", "/a") == [200, 200]
    assert sites[1].codes("/a", "/a") == [200, 429]


def test_a_key_prefix_sets_apps_apart(redis_uri: str) -> None:
    for name in ("one", "two"):
        site = Site(storage_uri=redis_uri, application_limits=["1/minute"], key_prefix=name)
        site.route("/a", site.limiter.limit(f"x{uuid.uuid4().hex[:8]}=9/minute"))
        assert site.codes("/a", "/a") == [200, 429]
