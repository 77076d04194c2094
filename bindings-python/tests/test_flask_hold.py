"""`mirab.flask` beyond the decision: requests that wait for their turn, places that end with the response."""

import io
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest
from flask import Flask, Response, abort, send_file, stream_with_context
from flask.testing import FlaskClient
from werkzeug.serving import make_server
from werkzeug.wsgi import FileWrapper

import mirab
from mirab import ManualClock, Unsupported
from mirab._flask_hold import Held
from mirab.flask import Limiter, RequestLimit

PLACES = "seats=concurrency: 2 for 30s"


class Site:
    """An app on a store, and what is in use of its places."""

    def __init__(self, uri: str = "", **options: object) -> None:
        self.uri = uri or f"memory:{uuid.uuid4().hex}"
        self.app = Flask("site")
        self.clock = ManualClock(1_700_000_000_000_000)
        options.setdefault("clock", self.clock)
        self.limiter = Limiter(lambda: "k", app=self.app, storage_uri=self.uri, **options)  # type: ignore[arg-type]
        self._places = mirab.Limiter(PLACES, self.uri, clock=self.clock)

    def limit(self, text: str, view: Callable[[], object], path: str = "/a") -> None:
        limited: Any = self.limiter.limit(text)(view)
        self.app.add_url_rule(path, path, limited, methods=["GET", "POST"])

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    @property
    def used(self) -> int:
        return self._places.peek("k").used


@pytest.fixture
def site(store_uri: str) -> Site:
    return Site(store_uri)


# A leaky bucket


def test_requests_leave_at_the_rate(site: Site) -> None:
    served: list[int] = []
    start = site.clock.now_us

    def view() -> str:
        served.append(site.clock.now_us - start)
        return ""

    site.limit("leaky_bucket: 4/second queue 3", view)
    for _ in range(3):
        assert site.client.get("/a").status_code == 200
    assert served == [0, 250_000, 500_000]


def test_a_full_queue_refuses_without_holding(site: Site) -> None:
    site.limit("leaky_bucket: 1/minute", lambda: "")
    assert site.client.get("/a").status_code == 200
    now = site.clock.now_us
    refusal = site.client.get("/a")
    assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "60")
    assert site.clock.now_us == now


def test_a_request_that_another_limit_refuses_is_not_held(site: Site) -> None:
    everybody = site.limiter.limit("1/hour", key_func=lambda: "everybody")
    site.limit("leaky_bucket: 4/second queue 3", everybody(lambda: ""))
    now = site.clock.now_us
    assert [site.client.get("/a").status_code for _ in range(2)] == [200, 429]
    assert site.clock.now_us == now


def test_requests_are_held_in_real_time() -> None:
    site = Site(clock=None)
    served: list[float] = []

    def view() -> str:
        served.append(time.monotonic())
        return ""

    site.limit("leaky_bucket: 10/second queue 4", view)
    begun = time.monotonic()
    with ThreadPoolExecutor(12) as pool:
        codes = list(pool.map(lambda _: site.client.get("/a").status_code, range(12)))
    assert set(codes) == {200, 429}
    assert len(served) == codes.count(200) >= 5
    for turn, at in enumerate(sorted(served)):
        assert at - begun >= turn * 0.1


def test_a_request_that_would_wait_longer_than_max_hold_leaves_the_queue(site: Site) -> None:
    start = site.clock.now_us
    site.limit("x=leaky_bucket: 4/second queue 100", lambda: "")
    queue = mirab.Limiter("x=leaky_bucket: 4/second queue 100", site.uri, clock=site.clock)
    assert queue.acquire("k", 5)
    for _ in range(3):
        refusal = site.client.get("/a")
        assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "1")
        assert refusal.headers["Cache-Control"] == "no-store"
        assert "RateLimit" not in refusal.headers
        assert site.clock.now_us == start
        assert queue.peek("k", 0).used == 5
    site.clock.advance_us(249_999)
    assert site.client.get("/a").status_code == 429
    site.clock.advance_us(1)
    assert site.client.get("/a").status_code == 200  # held for all of max_hold
    assert site.clock.now_us == start + 1_250_000


def test_what_is_decided_with_a_queue_is_given_back_with_it(site: Site) -> None:
    told: list[RequestLimit] = []
    site.limiter = Limiter(
        lambda: "k", app=site.app, storage_uri=site.uri, clock=site.clock, max_hold=0, on_breach=told.append
    )
    site.limit("9/hour; x=leaky_bucket: 1/minute queue 5", lambda: "")
    response = site.client.get("/a")
    assert (response.status_code, response.headers["RateLimit"].count("r=")) == (200, 2)
    refusal = site.client.get("/a")
    assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "60")
    assert "leaky_bucket: 1/minute" in refusal.text
    assert [(limit.limit.name, limit.breached, limit.decision.allowed) for limit in told] == [
        ("x", True, True)
    ]
    site.clock.advance(60)
    assert site.client.get("/a").headers["RateLimit"].startswith('"fixed_window: 9/hour from first";r=7;')


def test_max_hold_of_several_decisions(site: Site) -> None:
    everybody = site.limiter.limit("y=leaky_bucket: 1/second queue 9", key_func=lambda: "everybody")
    site.limit("x=leaky_bucket: 1/second queue 9", everybody(lambda: ""))
    queues = mirab.Limiter("y=leaky_bucket: 1/second queue 9", site.uri, clock=site.clock)
    other = mirab.Limiter("x=leaky_bucket: 1/second queue 9", site.uri, clock=site.clock)
    assert queues.acquire("everybody", 3)
    assert other.acquire("k")
    refusal = site.client.get("/a")
    assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "2")
    assert (other.peek("k", 0).used, queues.peek("everybody", 0).used) == (1, 3)


# Places of a concurrency limit


def stream() -> Iterator[bytes]:
    yield b"one"
    yield b"two"


def broken_stream() -> Iterator[bytes]:
    yield b"one"
    raise LookupError("halfway")


def fails() -> NoReturn:
    raise LookupError("at once")


def refuses_to_close() -> Response:
    def fail() -> NoReturn:
        raise LookupError("in close")

    response = Response("text")
    response.call_on_close(fail)
    return response


VIEWS: dict[str, Callable[[], object]] = {
    "text": lambda: "text",
    "nothing": lambda: ("", 204),
    "abort": lambda: abort(403),
    "error": fails,
    "stream": lambda: Response(stream()),
    "broken stream": lambda: Response(broken_stream()),
    "file": lambda: send_file(io.BytesIO(b"x" * 100_000), "text/plain"),
    "unclosable": refuses_to_close,
}


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_place_ends_with_the_response(site: Site, name: str, method: str) -> None:
    used: list[int] = []

    def view() -> object:
        used.append(site.used)
        return VIEWS[name]()

    site.limit(PLACES, view)
    for _ in range(3):
        try:
            with site.client.open("/a", method=method) as response:
                response.get_data()
        except LookupError:
            pass
        assert site.used == 0
    assert used == [1, 1, 1]


def test_a_place_ends_when_an_error_leaves_the_app(site: Site) -> None:
    site.app.testing = True
    site.limit(PLACES, fails)
    for _ in range(3):
        with pytest.raises(LookupError):
            site.client.get("/a")
        assert site.used == 0


def test_a_place_is_taken_while_the_response_streams(site: Site) -> None:
    site.limit(PLACES, lambda: Response(stream()))
    first, second = site.client.get("/a"), site.client.get("/a")
    refusal = site.client.get("/a")
    assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "1")
    assert refusal.headers["RateLimit-Policy"] == '"seats";q=2;qu="concurrent-requests"'
    refusal.close()
    assert site.used == 2
    assert first.text == "onetwo"
    first.close()
    assert site.used == 1
    second.close()  # left in the middle
    assert site.used == 0
    second.close()
    assert site.used == 0


def test_a_place_that_nobody_gives_back_expires(site: Site) -> None:
    site.limit(PLACES, lambda: Response(stream()))
    left = [site.client.get("/a"), site.client.get("/a")]
    site.clock.advance(30)
    third = site.client.get("/a")
    assert third.status_code == 200
    for response in left:
        response.close()
    assert site.used == 1
    third.close()


def test_a_cost_and_several_limits(site: Site) -> None:
    @site.limiter.limit("other=concurrency: 1 for 30s", key_func=lambda: "everybody")
    @site.limiter.limit(f"{PLACES}; 5/hour", cost=2)
    def view() -> str:
        return str(site.used)

    site.app.add_url_rule("/a", "a", view)
    with site.client.get("/a") as response:
        assert response.get_data(as_text=True) == "2"
        with site.client.get("/a") as refusal:
            assert refusal.status_code == 429
    assert site.used == 0
    with site.client.get("/a") as response:
        assert response.status_code == 200


def test_a_request_that_a_later_limit_refuses_gives_its_place_back(site: Site) -> None:
    denied = site.limiter.limit("deny", key_func=lambda: "everybody")
    site.limit(PLACES, denied(lambda: ""))
    response = site.client.get("/a")
    assert (response.status_code, site.used) == (429, 0)
    response.close()
    assert site.used == 0


def test_a_function_that_takes_a_place_while_the_response_streams(site: Site) -> None:
    @site.limiter.limit(PLACES)
    def piece() -> bytes:
        return str(site.used).encode()

    def pieces() -> Iterator[bytes]:
        yield b"none"
        yield piece()

    site.app.add_url_rule("/a", "a", lambda: Response(stream_with_context(pieces())))
    with site.client.get("/a") as response:
        assert response.get_data(as_text=True) == "none1"
    assert site.used == 0


def test_two_limiters_and_two_apps(site: Site) -> None:
    other = Limiter(lambda: "k", app=site.app, storage_uri=site.uri, clock=site.clock)
    second = Flask("second")
    other.init_app(second)
    site.limit(PLACES, other.limit("other=concurrency: 1 for 30s")(lambda: str(site.used)))
    second.add_url_rule("/b", "b", other.limit(PLACES)(lambda: str(site.used)))
    for _ in range(2):
        with site.client.get("/a") as one, second.test_client().get("/b") as two:
            assert (one.get_data(as_text=True), two.get_data(as_text=True)) == ("1", "2")
        assert site.used == 0


def test_a_request_that_passes_by_the_wsgi_app_is_an_error(site: Site) -> None:
    site.limit(PLACES, lambda: "")
    with site.app.test_request_context("/a"), pytest.raises(Unsupported, match="wsgi_app"):
        site.app.preprocess_request()
    assert site.used == 0


def test_a_store_that_fails_lets_the_response_pass(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    limiter = mirab.Limiter(PLACES, site.uri, clock=site.clock)
    closed = mirab.Limiter(PLACES, site.uri, clock=site.clock)
    held = Held()
    held.add(limiter, limiter.acquire("k"))
    held.add(closed, closed.acquire("k"))
    closed.close()
    with caplog.at_level(logging.WARNING, "mirab"):
        held.end()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "until it expires" in caplog.text
    assert site.used == 1
    held.add(limiter, limiter.acquire("k"))  # after its end: a thread that goes on
    assert site.used == 1


def test_a_file_is_left_to_the_server_unless_a_place_is_held(site: Site) -> None:
    site.limit(PLACES, VIEWS["file"], "/limited")
    site.app.add_url_rule("/free", "free", VIEWS["file"])  # type: ignore[arg-type]
    bodies = {}
    for path in ("/limited", "/free"):
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": path,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": io.StringIO(),
            "wsgi.file_wrapper": FileWrapper,
        }
        bodies[path] = site.app(environ, lambda *_: lambda _: None)
    assert isinstance(bodies["/free"], FileWrapper)
    assert site.used == 1
    assert b"".join(bodies["/limited"]) == b"x" * 100_000
    for body in bodies.values():
        body.close()  # type: ignore[attr-defined]
    assert site.used == 0


def test_a_client_that_leaves_a_real_server_gives_its_place_back() -> None:
    site = Site(clock=None)
    site._places = mirab.Limiter(PLACES, site.uri)
    going = threading.Event()

    def endless() -> Iterator[bytes]:
        while True:
            going.set()
            time.sleep(0.005)
            yield b"x" * 10_000

    site.limit(PLACES, lambda: Response(endless()))
    server = make_server("127.0.0.1", 0, site.app, threaded=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"GET /a HTTP/1.0\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.")
            assert going.wait(10)
            assert site.used == 1
        deadline = time.monotonic() + 10
        while site.used and time.monotonic() < deadline:
            time.sleep(0.01)
        assert site.used == 0
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
