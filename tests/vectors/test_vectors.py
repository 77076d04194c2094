"""Plays the published cases through the Python package, on memory, in shared memory and on Redis."""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mirab import Limit, Limiter, ManualClock

CASES = sorted(Path(__file__).parent.glob("*.json"))
SHARED = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp")


def limit_of(case: dict[str, Any]) -> Limit:
    limit, per = case["limit"], timedelta(microseconds=case["period_us"])
    match case["algorithm"]:
        case "token_bucket":
            return Limit.token_bucket(limit, per, case["capacity"])
        case "leaky_bucket":
            return Limit.leaky_bucket(limit, per, case["queue"])
        case "fixed_window":
            return Limit.fixed_window(limit, per, case.get("anchor", "clock"))
        case "sliding_window":
            return Limit.sliding_window(limit, per)
        case "sliding_log":
            return Limit.sliding_log(limit, per)
        case unknown:
            raise AssertionError(f"the case names the algorithm {unknown}")


@contextmanager
def store(name: str) -> Iterator[str]:
    if name == "memory":
        yield "memory:"
    elif name == "shm":
        file = SHARED / f"mirab-vectors-{uuid.uuid4().hex}"
        try:
            yield f"shm://{file}?max_keys=64&timeout_ms=5000"
        finally:
            file.unlink()
    else:
        address = os.environ.get("MIRAB_TEST_REDIS")
        assert address, "MIRAB_TEST_REDIS is not set: run scripts/with-redis.sh"
        yield f"{address}?timeout_ms=5000&prefix={uuid.uuid4().hex}"


def microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def test_there_are_cases_of_every_algorithm() -> None:
    algorithms = {json.loads(path.read_text())["limit"]["algorithm"] for path in CASES}
    assert algorithms == {"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"}


@pytest.mark.parametrize("where", ["memory", "shm", "redis"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, where: str) -> None:
    case = json.loads(path.read_text())
    with store(where) as uri:
        clock = ManualClock()
        limiter = Limiter(limit_of(case["limit"]), uri, clock=clock, on_store_failure="raise")
        play(case, limiter, clock)


def play(case: dict[str, Any], limiter: Limiter, clock: ManualClock) -> None:
    limit = limit_of(case["limit"])
    for number, step in enumerate(case["steps"]):
        clock.set_us(step["at_us"])
        peek = limiter.peek("k", step["cost"])
        decision = limiter.acquire("k", step["cost"])
        wait = decision.retry_after
        answer = {
            "allowed": decision.allowed,
            "remaining": decision.remaining,
            "reset_after_us": microseconds(decision.reset_after),
            "retry_after_us": "never" if decision.never else microseconds(wait or 0),
            "delay_us": microseconds(decision.delay),
        }
        said = {"delay_us": 0} | {name: step[name] for name in step if name not in ("at_us", "cost")}
        assert answer == said, f"step {number} at {step['at_us']}"
        assert (decision.limit, decision.limit_name) == (limit.capacity, str(limit))
        assert decision.used == decision.limit - decision.remaining
        assert (peek.allowed, peek.never, peek.retry_after) == (decision.allowed, decision.never, wait)
        assert peek.delay == decision.delay
