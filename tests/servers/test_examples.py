"""The example apps, run from the installed packages: what each answers, and that they share their buckets."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from apps import EXAMPLES, App, c_program, flask_app, node_app, shared_memory
from client import Reply, get

LIMITS = "1/hour burst 5"

Start = Callable[[str, str], AbstractContextManager[App]]
STARTS: dict[str, Start] = {
    "flask_app": flask_app,
    "express_app": lambda store, limits: node_app("express_app", store, limits),
    "node_http": lambda store, limits: node_app("node_http", store, limits),
}
EVERY_APP = pytest.mark.parametrize("name", STARTS)
DEFAULT_STORE = "shm:examples"


@pytest.fixture
def default_store() -> Iterator[None]:
    """Leaves the file of the examples' own store as it was: somebody may be playing with them."""
    before = default_files()
    yield
    for file in default_files() - before:
        file.unlink()


def default_files() -> set[Path]:
    return set(Path("/dev/shm").glob(f"mirab-{os.getuid()}-*-{DEFAULT_STORE.removeprefix('shm:')}"))


def somebody() -> str:
    return f"user-{uuid.uuid4()}"


def without_store() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "MIRAB_STORE"}


def check_accepted(reply: Reply, user: str, remaining: int) -> None:
    assert reply.status == 200, reply
    assert reply.body["user"] == user
    assert reply.body["message"] == f"Xush kelibsiz, {user}!"
    assert reply.headers["Retry-After"] is None
    check_bucket(reply, remaining)
    assert reply.body["bucket"]["allowed"] is True
    assert reply.body["bucket"]["retry_after"] is None


def check_refused(reply: Reply, user: str) -> None:
    assert reply.status == 429, reply
    assert reply.body["user"] == user
    assert 3590 <= int(reply.headers["Retry-After"]) <= 3600
    seconds = reply.headers["Retry-After"]
    assert reply.body["message"] == f"Soʻrovlar juda koʻp. {seconds} soniyadan keyin qayta urinib koʻring."
    check_bucket(reply, 0)
    assert reply.body["bucket"]["allowed"] is False
    assert reply.body["bucket"]["retry_after"] == int(seconds)


def check_bucket(reply: Reply, remaining: int) -> None:
    bucket = reply.body["bucket"]
    assert (bucket["limit"], bucket["used"], bucket["remaining"]) == (5, 5 - remaining, remaining), bucket
    assert reply.headers["Content-Type"].startswith("application/json")
    assert f"r={remaining}" in reply.headers["RateLimit"]
    assert "q=5" in reply.headers["RateLimit-Policy"]


@EVERY_APP
def test_answers(name: str, store: str) -> None:
    user = somebody()
    with STARTS[name](store, LIMITS) as app:
        for remaining in (4, 3, 2, 1, 0):
            check_accepted(get(app, user), user, remaining)
        for _ in range(3):
            check_refused(get(app, user), user)
        other = somebody()
        check_accepted(get(app, other), other, 4)


@EVERY_APP
def test_without_a_name_everybody_is_the_default_user(name: str) -> None:
    # Where no other test has been.
    with shared_memory("nobody") as store, STARTS[name](store, LIMITS) as app:
        check_accepted(get(app), "default-user", 4)
        check_accepted(get(app, ""), "default-user", 3)
        check_accepted(get(app, "default-user"), "default-user", 2)


@EVERY_APP
@pytest.mark.usefixtures("default_store")
def test_the_default_limits_are_one_a_second_and_a_burst_of_five(name: str) -> None:
    with STARTS[name]("", "") as app:
        first = get(app, somebody())
        assert first.status == 200
        assert first.body["bucket"]["limit"] == 5
        assert "q=5;w=5" in first.headers["RateLimit-Policy"].replace(" ", "")


@pytest.mark.usefixtures("default_store")
def test_started_side_by_side_they_share_a_bucket() -> None:
    user = somebody()
    with ExitStack() as stack:
        apps = [stack.enter_context(start("", "1/hour burst 5")) for start in STARTS.values()]
        lefts = [get(app, user).body["bucket"]["remaining"] for app in apps]
        assert lefts == [4, 3, 2]


@pytest.mark.usefixtures("default_store")
def test_the_c_program_shares_with_them(tmp_path: Path) -> None:
    taps, user = c_program(EXAMPLES / "c_program/taps.c", tmp_path), somebody()
    with STARTS["node_http"]("", "") as app:
        for _ in range(5):
            get(app, user)
        # In five seconds it would be full again.
        asked = subprocess.run([taps, user, "5"], env=without_store(), capture_output=True, text=True)
    assert asked.returncode == 1, asked
    assert "Kuting" in asked.stdout


def test_the_three_apps_share_a_bucket(store: str) -> None:
    names = [
        somebody(),
        "quote'\"{brace}\\ %00 :1",
        "{}",
        "x" * 4000,
        "gülçin".encode(),
        b"\xff\xfe",
    ]
    with ExitStack() as stack:
        apps = [stack.enter_context(start(store, LIMITS)) for start in STARTS.values()]
        for name in names:
            statuses = [get(apps[turn % 3], name).status for turn in range(9)]
            assert statuses == [200] * 5 + [429] * 4, name
        for turn, app in enumerate(apps):
            fresh = somebody()
            assert get(app, fresh).body["bucket"]["remaining"] == 4, turn


@EVERY_APP
def test_a_store_that_cannot_be_reached_is_no_answer(name: str) -> None:
    # Port 1 of the loopback address: refused at once.
    with STARTS[name]("redis://127.0.0.1:1?timeout_ms=5000", LIMITS) as app:
        reply = get(app, somebody())
        assert reply.status == 503, reply
        assert reply.headers["Retry-After"] is not None
        assert "message" in reply.body


@EVERY_APP
def test_a_limit_that_makes_no_sense_stops_the_start(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    # gunicorn listens before its workers have made the app: there the first request finds nobody.
    with pytest.raises((RuntimeError, OSError)), STARTS[name]("memory:", "5/minuet") as app:
        get(app)
    assert "5/minuet" in capfd.readouterr().err
