"""Clocks: manual, callable and the interpreter's, on every store."""

import logging
import os
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from mirab import InvalidArgument, Limiter, ManualClock


def test_manual_clock_moves_by_hand() -> None:
    clock = ManualClock(start_us=5)
    clock.advance(1.5)
    clock.advance(timedelta(microseconds=2))
    clock.advance_us(3)
    assert clock.now_us == 1_500_010
    clock.set_us(7)
    assert clock.now_us == 7
    assert repr(clock) == "ManualClock(7)"
    assert ManualClock().now_us == 0


@pytest.mark.parametrize("value", [-1, 2**52 + 1, 2**64, 1.5, True, "1", None])
def test_manual_clock_refuses(value: int) -> None:
    clock = ManualClock(1)
    for call in (ManualClock, clock.advance_us, clock.set_us):
        with pytest.raises(InvalidArgument):
            call(value)
    assert clock.now_us == 1


@pytest.mark.parametrize(
    "value", [-1, 0, 1e-8, float("nan"), float("inf"), 1e300, True, "1", None, timedelta(-1)]
)
def test_advance_refuses(value: float) -> None:
    clock = ManualClock(1)
    with pytest.raises(InvalidArgument):
        clock.advance(value)
    assert clock.now_us == 1


@pytest.mark.parametrize("limit", ["7/second", "3/minute", "999983/day", "fixed_window: 3/hour from first"])
@pytest.mark.parametrize("start_us", [0, 1_700_000_000_123_457])
def test_retry_after_lands_exactly_on_the_instant(store_uri: str, limit: str, start_us: int) -> None:
    clock = ManualClock(start_us)
    limiter = Limiter(limit, store_uri, clock=clock)
    limiter.acquire("k", limiter.peek("k").limit)
    refusal = limiter.acquire("k")
    assert refusal.retry_after
    landed = clock.now_us + round(refusal.retry_after * 1e6)
    clock.advance(refusal.retry_after)
    assert clock.now_us == landed
    clock.set_us(landed - 1)
    assert not limiter.peek("k")
    clock.set_us(landed)
    assert limiter.allow("k")


@pytest.mark.parametrize("kind", [float, int])
def test_a_callable_is_a_clock(store_uri: str, kind: type[float]) -> None:
    now = [0]
    limiter = Limiter("1/minute", store_uri, clock=lambda: kind(now[0]))
    assert limiter.allow("k")
    assert limiter.acquire("k").retry_after == 60.0
    now[0] = 59
    assert not limiter.allow("k")
    now[0] = 60
    assert limiter.allow("k")


def test_a_callable_is_read_once_a_decision(store_uri: str) -> None:
    readings: list[float] = []

    def read() -> float:
        readings.append(0.0)
        return 1.7e9

    limiter = Limiter("1/minute", store_uri, clock=read)
    limiter.acquire("k")
    limiter.peek("k")
    limiter.allow("k")
    assert len(readings) == 3


def test_what_a_callable_raises_is_passed_on() -> None:
    def broken() -> float:
        raise LookupError("no battery")

    with pytest.raises(LookupError, match="no battery"):
        Limiter("1/minute", clock=broken).allow("k")


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e300, 4_503_599_628, "now", None])
def test_a_callable_must_tell_the_time(value: float) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Limiter("1/minute", clock=lambda: value).allow("k")
    assert f"the clock returned {value!r}: it must be" in str(caught.value)


def test_a_given_clock_has_its_own_space_on_redis(redis_uri: str) -> None:
    assert Limiter("1/hour", redis_uri).allow("k")
    assert Limiter("1/hour", redis_uri, clock=ManualClock()).allow("k")


def test_the_environment_chooses_the_hosts_clock(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRAB_CLOCK", "host")
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    limiter = Limiter("1/minute", store_uri)
    assert limiter.allow("k")
    assert limiter.acquire("k").retry_after == 60.0
    monkeypatch.setattr(time, "time", lambda: 1_700_000_060.0)
    assert limiter.allow("k")
    assert Limiter("1/minute", clock=ManualClock()).allow("k")


def test_the_environment_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRAB_CLOCK", "sundial")
    with pytest.raises(InvalidArgument, match="sundial"):
        Limiter("1/minute")


def test_the_hosts_clock_warns_once() -> None:
    program = "from mirab import Limiter; Limiter('1/minute'); Limiter('1/minute')"
    environment = {**os.environ, "MIRAB_CLOCK": "host"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stderr.count("MIRAB_CLOCK=host") == 1


def test_the_system_clock_needs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "mirab"):
        Limiter("1/minute").allow("k")
    assert not caplog.records
