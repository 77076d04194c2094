"""Shared memory: one bucket for the processes of a host, what is wrong with a file, and what is logged."""

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mirab import (
    AsyncLimiter,
    InvalidUri,
    Limiter,
    MirabError,
    Store,
    StoreCorrupt,
    StoreDenied,
    StoreTimeout,
    StoreUnavailable,
    Unsupported,
)
from mirab.http import Answers
from shared import Shared
from stopped import beside_one_that_is_stopped, hammering

PATIENCE = 30

Log = pytest.LogCaptureFixture


def test_it_says_what_it_is(shared: Shared) -> None:
    store = Store(shared.uri())
    assert (store.kind, repr(store)) == ("shm", "<mirab.Store shm>")
    limiter = Limiter("5/minute", store)
    assert repr(limiter) == '<mirab.Limiter "5/minute" on shm>'
    assert repr(AsyncLimiter("5/minute", store)) == '<mirab.AsyncLimiter "5/minute" on shm>'
    health = limiter.health()
    assert (health.store, health.ok, health.circuit) == (f"shm:{shared.name}", True, "closed")
    assert health.layout == 1
    assert (health.last_error, health.server_version, health.may_drop_keys) == (None, None, False)
    assert oct(shared.path.stat().st_mode & 0o777) == "0o600"


def test_keys_are_counted_and_those_that_are_forgotten(shared: Shared) -> None:
    limiter = Limiter("5/hour", shared.uri("max_keys=64"))
    for number in range(1000):
        assert limiter.allow(str(number))
    stats = limiter.stats()
    assert 64 <= stats.keys <= 500
    assert stats.evicted == 1000 - stats.keys


def test_a_new_process_draws_from_the_same_bucket(shared: Shared) -> None:
    limiter = Limiter("10/day", shared.uri(), on_store_failure="raise")
    assert limiter.allow("k")
    program = f"""
from mirab import Limiter
limiter = Limiter("10/day", {shared.uri()!r}, on_store_failure="raise")
print([limiter.acquire("k").used for _ in range(3)])
"""
    for first in (2, 5):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert (done.stdout, done.stderr) == (f"{[first, first + 1, first + 2]}\n", "")
    assert limiter.peek("k").used == 7


# What is wrong


def make_truncated(path: Path) -> None:
    path.write_bytes(b"")


def make_foreign(path: Path) -> None:
    path.write_bytes(b"A letter to somebody else.\n" * 4096)


def make_link(path: Path) -> None:
    path.symlink_to(path.with_name(f"{path.name}-aim"))


def make_anothers(path: Path) -> None:
    """Only root can make one for another; who isn't finds root's."""
    path.write_bytes(b"")
    os.chown(path, 4711, 4711)


@pytest.mark.parametrize(
    ("make", "kind", "part"),
    [
        (make_truncated, StoreCorrupt, "only 0 bytes"),
        (make_foreign, StoreCorrupt, "shared-memory file"),
        (os.mkdir, StoreCorrupt, "folder"),
        (make_link, StoreDenied, "symbolic link"),
    ],
)
def test_a_wrong_file_is_named_with_its_owner(
    shared: Shared, make: Callable[[Path], None], kind: type[MirabError], part: str
) -> None:
    make(shared.path)
    try:
        for name in (Limiter, AsyncLimiter):
            with pytest.raises(kind, match=part) as raised:
                name("5/minute", shared.uri())
            assert str(shared.path) in str(raised.value)
            assert re.search(r" of user \S+", str(raised.value))
    finally:
        if shared.path.is_dir():
            shared.path.rmdir()


def test_another_users_file_is_denied(shared: Shared) -> None:
    path = shared.path
    if os.getuid() == 0:
        make_anothers(path)
    else:
        path = Path("/etc/passwd")
    with pytest.raises(StoreDenied) as raised:
        Store(f"shm://{path}")
    assert f'"{path}" of user {"4711" if os.getuid() == 0 else "root"}' in str(raised.value)


@pytest.mark.parametrize(
    ("uri", "part"),
    [
        ("shm:", "1 to 64"),
        ("shm:a/b", "a/b"),
        ("shm:web?max_keys=0", 'max_keys="0"'),
        ("shm:web?mode=666", 'mode="666"'),
        ("shm:web?prefix=x", "prefix"),
    ],
)
def test_a_wrong_uri(uri: str, part: str) -> None:
    with pytest.raises(InvalidUri, match=part):
        Limiter("5/minute", uri)


def test_a_list_that_is_too_long_is_told_when_the_limiter_is_made(shared: Shared) -> None:
    uri = shared.uri("max_keys=64&log_entries=100")
    Limiter("sliding_log: 128/hour", uri)
    for limit in ("sliding_log: 129/hour", "concurrency: 65 for 30s"):
        with pytest.raises(Unsupported, match=r"log_entries=256"):
            Limiter(limit, uri)


def test_a_file_that_has_no_room_is_told_when_it_is_made(shared: Shared) -> None:
    program = f"""
import resource
from mirab import Store, StoreUnavailable
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    Store({shared.uri()!r})
except StoreUnavailable as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert "there is no such room" in done.stdout, done.stderr
    assert not shared.path.exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="No such file"):
        Limiter("5/minute", f"shm://{tmp_path}/nowhere/store")


# A process that is stopped while it decides

IMPATIENT = "max_keys=64&timeout_ms=50"
MANY = "fixed_window: 4000000000/365 days from first"


def test_who_waits_for_a_stopped_process_is_told(shared: Shared, caplog: Log) -> None:
    limiter = Limiter(MANY, shared.uri(IMPATIENT), on_store_failure="raise")

    def ask() -> StoreTimeout | None:
        try:
            limiter.acquire("k")
        except StoreTimeout as error:
            return error
        return None

    with hammering(MANY, shared.uri(IMPATIENT)) as process:
        error, took = beside_one_that_is_stopped(process, ask, lambda error: error is not None)
    assert "stopped" in str(error)
    assert isinstance(error, TimeoutError)
    assert 0.05 <= took < 0.5
    assert limiter.stats().errors == 1
    [(_, level, text)] = said(caplog)
    assert level == "ERROR"
    assert f"shm:{shared.name}: does not decide about some keys: " in text
    for _ in range(20):
        limiter.allow("k")
    assert ["decides again" in text for _, _, text in said(caplog)] == [False, True]


def test_who_waits_for_a_stopped_process_decides_by_his_share(shared: Shared, caplog: Log) -> None:
    limiter = Limiter(MANY, shared.uri(IMPATIENT), instances=4)
    with hammering(MANY, shared.uri(IMPATIENT)) as process:
        decision, took = beside_one_that_is_stopped(
            process, lambda: limiter.acquire("k"), lambda decision: decision.degraded
        )
    assert (decision.allowed, decision.limit, decision.used) == (True, 10**9, 1)
    told = dict(Answers(["draft-8"]).answer(decision).headers)
    assert told["RateLimit-Policy"].endswith(";q=1000000000;w=31536000")
    assert 0.05 <= took < 0.5
    assert limiter.stats().degraded == 1
    assert [level for _, level, _ in said(caplog)] == ["ERROR"]
    assert not limiter.acquire("k").degraded


@pytest.mark.parametrize(("choice", "allowed"), [("open", True), ("closed", False)])
def test_all_pass_or_none_beside_a_stopped_process(shared: Shared, choice: str, *, allowed: bool) -> None:
    limiter = Limiter(MANY, shared.uri(IMPATIENT), on_store_failure=choice)
    with hammering(MANY, shared.uri(IMPATIENT)) as process:
        decision, _ = beside_one_that_is_stopped(
            process, lambda: limiter.acquire("k"), lambda decision: decision.degraded
        )
    assert (decision.allowed, decision.never) == (allowed, False)


# The log


def said(caplog: Log) -> list[tuple[str, str, str]]:
    return [(record.name, record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize("make", [Limiter, AsyncLimiter])
def test_another_size_than_the_files_is_logged_when_the_limiter_is_made(
    shared: Shared, caplog: Log, make: Callable[..., Any]
) -> None:
    Limiter("5/hour", shared.uri("max_keys=64"))
    assert said(caplog) == []
    make("5/hour", shared.uri("max_keys=65"))
    [(name, level, text)] = said(caplog)
    assert (name, level) == ("mirab", "WARNING")
    assert f"the store shm:{shared.name}: made with max_keys=64, not 65" in text


@pytest.mark.parametrize("operation", ["acquire", "allow", "peek"])
def test_that_the_file_was_removed_is_logged(shared: Shared, caplog: Log, operation: str) -> None:
    limiter = Limiter("5/hour", shared.uri())
    ask = getattr(limiter, operation)
    ask("k")
    assert limiter.acquire("k", 2)
    shared.path.unlink()
    deadline = time.monotonic() + PATIENCE
    while not caplog.records:
        assert time.monotonic() < deadline, "it was never told"
        ask("other")
        time.sleep(0.01)
    [(name, level, text)] = said(caplog)
    assert (name, level) == ("mirab", "ERROR")
    assert str(shared.path) in text
    assert "was removed" in text
    assert limiter.peek("k").used == 0


def test_a_log_that_fails_fails_no_limiter(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: logging.LogRecord) -> bool:
        raise LookupError

    failures: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)
    monkeypatch.setattr(logging.getLogger("mirab"), "filter", fail)
    Limiter("5/hour", shared.uri("max_keys=64"))
    assert Limiter("5/hour", shared.uri("max_keys=65")).allow("k")
    assert [failure.exc_type for failure in failures] == [LookupError]
