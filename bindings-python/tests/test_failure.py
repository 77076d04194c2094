"""What a limiter does when its store fails, what it says of itself then, and what is logged."""

import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from mirab import Closed, Health, InvalidArgument, Limiter, MirabError, StoreTimeout
from mirab.http import Answers
from redis_server import PATIENCE, Server

QUICK = "timeout_ms=50&connect_timeout_ms=50"
HURRIED = "timeout_ms=5000&connect_timeout_ms=5000"


def until(holds: Callable[[], object]) -> None:
    """Wait until it holds, as it does in a moment."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.002)


def test_the_limits_are_kept_here_unless_told_otherwise(server: Server) -> None:
    limiter = Limiter("5/hour", server.uri(HURRIED))
    before = limiter.acquire("k", 2)
    assert (before.degraded, before.used) == (False, 2)
    server.kill()
    after = [limiter.acquire("k") for _ in range(5)]
    assert [decision.allowed for decision in after] == [True, True, True, False, False]
    assert all(decision.degraded for decision in after)
    assert [decision.used for decision in after] == [3, 4, 5, 5, 5]
    assert "degraded=True" in repr(after[0])
    stats = limiter.stats()
    assert (stats.allowed, stats.refused, stats.degraded, stats.errors) == (4, 2, 5, 0)
    assert limiter.refund(after[0]) == 0


def test_each_of_many_instances_keeps_its_part(server: Server) -> None:
    server.kill()
    limiter = Limiter("100/hour", server.uri(QUICK), instances=40)
    assert [limiter.allow("k") for _ in range(5)] == [True, True, True, False, False]
    assert limiter.acquire("k").limit == 3
    assert limiter.acquire("other", 101).never


@pytest.mark.parametrize("instances", [0, -1, 2**32, 1.0, "2", True])
def test_what_is_no_number_of_instances(instances: Any) -> None:
    with pytest.raises(InvalidArgument, match="instances"):
        Limiter("5/hour", "redis://127.0.0.1:1", instances=instances)


@pytest.mark.parametrize("choice", [None, 5, b"local", "LOCAL", ""])
def test_what_is_no_choice(choice: Any) -> None:
    with pytest.raises(InvalidArgument, match=r'on_store_failure .*"closed"'):
        Limiter("5/hour", on_store_failure=choice)


def test_open_admits_all_and_invents_no_numbers(server: Server) -> None:
    server.kill()
    limiter = Limiter("5/hour", server.uri(QUICK), on_store_failure="open")
    decisions = [limiter.acquire("k") for _ in range(9)]
    assert all(decision.allowed and decision.degraded for decision in decisions)
    answer = Answers(["draft-8", "x-ratelimit"], body="json").answer(decisions[0])
    assert (answer.status, answer.headers, answer.body) == (200, [], None)
    assert limiter.allow("k")
    assert limiter.peek("k").degraded


def test_closed_refuses_all_until_the_store_is_looked_for_again(server: Server) -> None:
    server.kill()
    limiter = Limiter("5/hour", server.uri(QUICK), on_store_failure="closed")
    decisions = [limiter.acquire("k") for _ in range(9)]
    assert not any(decisions)
    assert all(decision.degraded and not decision.never for decision in decisions)
    assert all(0 < (decision.retry_after or 0) < 3 for decision in decisions)
    answer = Answers(["draft-8", "x-ratelimit"], body="problem").answer(decisions[0])
    assert answer.status == 503
    assert [name for name, _ in answer.headers] == ["Retry-After", "Cache-Control", "Content-Type"]
    assert "#temporary-reduced-capacity" in (answer.body or "")
    assert '"violated-policies":[]' in (answer.body or "")
    assert not limiter.allow("k")


def test_raise_raises(server: Server) -> None:
    limiter = Limiter("5/hour", server.uri(QUICK), on_store_failure="raise")
    server.freeze()
    with pytest.raises(StoreTimeout):
        limiter.acquire("k")
    assert (limiter.stats().errors, limiter.stats().degraded) == (1, 0)


@pytest.mark.parametrize("choice", ["local", "open", "closed"])
def test_an_operator_is_told_that_nothing_was_done(server: Server, choice: str) -> None:
    server.kill()
    limiter = Limiter("5/hour", server.uri(QUICK), on_store_failure=choice)
    for operation in (limiter.reset, limiter.unblock):
        with pytest.raises(MirabError):
            operation("k")
    with pytest.raises(MirabError):
        limiter.block("k", 60)


def test_a_store_in_this_process_never_fails() -> None:
    for choice in ("local", "open", "closed", "raise"):
        limiter = Limiter("2/hour", on_store_failure=choice, instances=2)
        assert [limiter.acquire("k").degraded for _ in range(3)] == [False] * 3
        assert limiter.peek("k").limit == 2


# The log


def test_each_change_is_logged_once(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    limiter = Limiter("5/hour", server.uri(QUICK))
    again = Limiter("7/hour", server.uri(QUICK))
    with caplog.at_level(logging.INFO):
        limiter.acquire("k")
        assert caplog.records == []
        server.kill()
        for _ in range(20):
            limiter.acquire("k")
            again.acquire("k")
        server.start()
        until(lambda: not limiter.acquire("k").degraded)
        again.acquire("k")
    said = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert [(name, level) for name, level, _ in said] == [("mirab", "ERROR"), ("mirab", "WARNING")]
    assert re.search(r"the store .*/redis\.sock.* is not asked any more .*: ", said[0][2])
    assert re.search(r"the store .*/redis\.sock.* decides again; it was away for [\d.]+ s", said[1][2])


def test_a_log_that_fails_fails_no_decision(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: logging.LogRecord) -> bool:
        raise LookupError

    failures: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)
    monkeypatch.setattr(logging.getLogger("mirab"), "filter", fail)
    server.kill()
    limiter = Limiter("5/hour", server.uri(QUICK))
    assert [limiter.acquire("k").degraded for _ in range(9)] == [True] * 9
    assert [failure.exc_type for failure in failures] == [LookupError]


# health


def test_the_health_of_a_store_in_this_process() -> None:
    health = Limiter("5/hour").health()
    assert (health.store, health.ok, health.circuit, health.opened) == ("memory:", True, "closed", 0)
    assert (health.last_error, health.server_version) == (None, None)
    assert (health.maxmemory_policy, health.clock_ahead) == (None, None)
    assert health.layout == 1
    assert not health.may_drop_keys


def test_the_health_of_a_server(server: Server) -> None:
    limiter = Limiter("5/hour", server.uri(QUICK))
    until(lambda: limiter.health().ok)
    health = limiter.health()
    assert str(server.path) in health.store
    assert health.circuit == "closed"
    assert health.server_version is not None
    assert re.fullmatch(r"[\d.]+", health.server_version)
    assert (health.maxmemory_policy, health.may_drop_keys) == ("noeviction", False)
    assert health.clock_ahead is not None
    assert abs(health.clock_ahead) < 1
    server.ask("CONFIG", "SET", "maxmemory", "100mb")
    server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    until(lambda: limiter.health().may_drop_keys)


def test_the_health_of_a_server_that_is_away(server: Server) -> None:
    limiter = Limiter("5/hour", server.uri(QUICK))
    limiter.acquire("k")
    server.kill()
    for _ in range(9):
        limiter.acquire("k")
    health = limiter.health()
    assert (health.ok, health.opened, health.server_version) == (False, 1, None)
    assert health.circuit in ("open", "trial")
    assert health.last_error is not None
    assert health.last_error[0] == "store_unavailable"
    assert str(server.path) in health.last_error[1]


def test_health_is_a_value_of_its_moment() -> None:
    limiter = Limiter("5/hour")
    health = limiter.health()
    assert isinstance(health, Health)
    assert repr(health) == (
        "Health(store='memory:', ok=True, circuit='closed', opened=0, last_error=None, last_error_age=None, "
        "server_version=None, maxmemory_policy=None, may_drop_keys=False, clock_ahead=None)"
    )
    with pytest.raises(AttributeError):
        health.ok = False  # type: ignore[misc]
    limiter.close()
    assert health.ok
    with pytest.raises(Closed):
        limiter.health()
