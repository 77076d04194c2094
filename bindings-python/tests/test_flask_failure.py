"""A Flask app whose store fails."""

import logging

import pytest
from flask import Flask

from mirab.flask import Limiter, NotDecided, RequestLimit
from redis_server import Server

QUICK = "timeout_ms=50&connect_timeout_ms=50"


def app_on(server: Server, **options: object) -> Flask:
    app = Flask("site")
    Limiter(
        lambda: "k",
        app=app,
        default_limits=["3/hour"],
        storage_uri=server.uri(QUICK),
        headers_enabled=True,
        **options,  # type: ignore[arg-type]
    )
    app.add_url_rule("/a", "a", lambda: "")
    return app


def codes(app: Flask, count: int) -> list[int]:
    client = app.test_client()
    return [client.get("/a").status_code for _ in range(count)]


def test_the_limits_hold_in_the_process_unless_told_otherwise(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_on(server)
    server.kill()
    with caplog.at_level(logging.INFO, "mirab"):
        assert codes(app, 5) == [200, 200, 200, 429, 429]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "RateLimit" in app.test_client().get("/a").headers


def test_each_instance_keeps_its_part(server: Server) -> None:
    app = app_on(server, instances=3)
    server.kill()
    assert codes(app, 3) == [200, 429, 429]


def test_open_lets_all_pass_and_tells_nothing(server: Server) -> None:
    app = app_on(server, on_store_failure="open")
    server.kill()
    assert codes(app, 9) == [200] * 9
    headers = app.test_client().get("/a").headers
    assert not [name for name, _ in headers if "RateLimit" in name or name == "Retry-After"]


def test_closed_is_a_503_that_says_when_to_come_again(server: Server) -> None:
    breaches: list[RequestLimit] = []
    app = app_on(server, on_store_failure="closed", on_breach=breaches.append)
    server.kill()
    for _ in range(5):
        response = app.test_client().get("/a")
        assert response.status_code == 503
        assert int(response.headers["Retry-After"]) in (1, 2)
        assert response.headers["Cache-Control"] == "no-store"
        assert not [name for name, _ in response.headers if "RateLimit" in name]
    assert breaches == []


def test_closed_refuses_by_its_limits_while_the_store_decides(server: Server) -> None:
    app = app_on(server, on_store_failure="closed")
    assert codes(app, 4) == [200, 200, 200, 429]


def test_the_503_can_be_answered_by_the_app(server: Server) -> None:
    app = app_on(server, on_store_failure="closed")

    @app.errorhandler(NotDecided)
    def say(error: NotDecided) -> tuple[str, int]:
        assert error.limit.decision.degraded
        return str(error.limit.limit), 503

    server.kill()
    response = app.test_client().get("/a")
    assert (response.status_code, response.text) == (503, "fixed_window: 3/hour from first")
