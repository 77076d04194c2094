"""Redis: nothing before the first decision, clear errors, quickly, when it is not there."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from mirab import Limiter, StoreTimeout, StoreUnavailable

NOTHING_STARTED = """
import os
before = len(os.listdir("/proc/self/task")), sorted(os.listdir("/proc/self/fd"))
from mirab import Limiter
limiters = [Limiter("5/minute", "redis://127.0.0.1:1"), Limiter("5/minute", os.environ["MIRAB_TEST_REDIS"])]
after = len(os.listdir("/proc/self/task")), sorted(os.listdir("/proc/self/fd"))
assert before == after, (before, after)
assert not any("socket" in os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
               if os.path.islink(f"/proc/self/fd/{fd}") and int(fd) > 2)
print("nothing started")
"""

ENDS_BY_ITSELF = """
import os
from mirab import Limiter
limiter = Limiter("5/minute", os.environ["MIRAB_TEST_REDIS"] + "?timeout_ms=5000&prefix=ends")
assert limiter.allow("k", 0)
"""


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that accepts and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield int(listener.getsockname()[1])


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_and_construction_start_nothing(redis_uri: str) -> None:
    assert redis_uri
    assert run(NOTHING_STARTED) == "nothing started\n"


def test_a_process_ends_with_an_open_limiter(redis_uri: str) -> None:
    assert redis_uri
    run(ENDS_BY_ITSELF)


def test_nobody_listens(closed_port: int) -> None:
    limiter = Limiter("5/minute", f"redis://127.0.0.1:{closed_port}", on_store_failure="raise")
    started = time.monotonic()
    for operation in (limiter.acquire, limiter.allow, limiter.peek, limiter.reset):
        with pytest.raises((StoreUnavailable, StoreTimeout)) as caught:
            operation("k")
        assert isinstance(caught.value, OSError)
        assert str(closed_port) in str(caught.value)
    assert time.monotonic() - started < 2


def test_nobody_answers(silent_port: int) -> None:
    uri = f"redis://127.0.0.1:{silent_port}?timeout_ms=100&connect_timeout_ms=100"
    limiter = Limiter("5/minute", uri, on_store_failure="raise")
    started = time.monotonic()
    with pytest.raises(TimeoutError) as caught:
        limiter.allow("k")
    assert time.monotonic() - started < 2
    assert caught.value.kind == "store_timeout"  # type: ignore[attr-defined]


def test_the_gil_is_free_while_redis_is_waited_for(silent_port: int) -> None:
    program = f"""
import threading, time
from mirab import Limiter, StoreTimeout
uri = "redis://127.0.0.1:{silent_port}?timeout_ms=600&connect_timeout_ms=600"
limiter = Limiter("5/minute", uri, on_store_failure="raise")
ticks = []
def ask():
    try:
        limiter.allow("k")
    except StoreTimeout:
        ticks.append(None)
thread = threading.Thread(target=ask)
thread.start()
while thread.is_alive():
    ticks.append(time.monotonic())
    time.sleep(0.01)
assert None in ticks
assert len(ticks) > 10, len(ticks)
"""
    run(program)


def test_a_foreign_value_is_left_alone(redis_uri: str) -> None:
    limiter = Limiter("5/hour", redis_uri, on_store_failure="raise")
    assert limiter.allow("k")
    host, _, rest = redis_uri.removeprefix("redis://").partition(":")
    port, _, query = rest.partition("?")
    prefix = query.rpartition("prefix=")[2]
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rwb") as wire:

        def command(*words: str) -> bytes:
            parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            wire.write(f"*{len(words)}\r\n{parts}".encode())
            wire.flush()
            return bytes(wire.readline()).strip()

        assert command("SET", f"{prefix}1:{{k}}t5/3600", "not a number") == b"+OK"
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the kind is looked at below
            limiter.allow("k")
        assert getattr(caught.value, "kind", None) == "store_corrupt"
        assert limiter.allow("other")
