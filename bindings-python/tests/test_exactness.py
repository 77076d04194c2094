"""At most the promised number in any span, from many threads and many processes on one key."""

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from hammer import Blows, Call, by_processes, by_threads, most_in_a_span
from mirab import Limiter

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

WINDOW_US = 100_000

SPANS: list[tuple[str, Callable[[int], int]]] = [
    ("1/ms burst 50", lambda us: 50 + us // 1000),
    ("sliding_log: 50/100ms", lambda us: 50 * (us // WINDOW_US + 1)),
    ("fixed_window: 50/100ms from first", lambda us: 50 * (us // WINDOW_US + 2)),
]
"""Limits, and how many they admit at most in a span of microseconds."""

TOTALS = ["1/hour burst 400", "sliding_log: 400/hour", "fixed_window: 400/hour from first"]
"""Limits that admit 400 in the life of a test."""


@pytest.fixture(autouse=True)
def often_switched() -> Iterator[None]:
    """Let another thread have its turn every 10 microseconds."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def makers(method: str, limits: str, uri: str) -> Callable[[], Limiter]:
    """How a process comes to its limiter: a forked one inherits one that was used before."""
    if method == "spawn":
        return partial(Limiter, limits, uri, on_store_failure="raise")
    limiter = Limiter(limits, uri, on_store_failure="raise")
    assert limiter.peek("k")
    return lambda: limiter


def most_in_a_window(calls: list[Call]) -> tuple[int, int]:
    """The most calls of one window that is aligned to 0: that lie in it for sure, and that may lie in it.

    A call that crosses an edge was decided on one side of it, its caller cannot know on which.
    """
    windows = [(call.began // 1000 // WINDOW_US, call.ended // 1000 // WINDOW_US) for call in calls]
    sure = Counter(first for first, last in windows if first == last)
    possible = Counter(index for first, last in windows for index in range(first, last + 1))
    return max(sure.values()), max(possible.values())


@pytest.mark.parametrize(("limits", "promised"), SPANS)
def test_threads_in_any_span(store_uri: str, limits: str, promised: Callable[[int], int]) -> None:
    calls = by_threads(Limiter(limits, store_uri, on_store_failure="raise"), Blows(seconds=0.35))
    assert len(calls) > 100
    assert most_in_a_span(calls, promised) is None


def test_threads_in_any_window_of_the_clock(store_uri: str) -> None:
    limiter = Limiter("fixed_window: 50/100ms", store_uri, on_store_failure="raise")
    calls = by_threads(limiter, Blows(seconds=0.35, now=time.time_ns))
    assert len(calls) > 100
    sure, possible = most_in_a_window(calls)
    assert sure <= 50 <= possible


@pytest.mark.parametrize("limits", TOTALS)
def test_threads_in_total(store_uri: str, limits: str) -> None:
    limiter = Limiter(limits, store_uri, on_store_failure="raise")
    assert len(by_threads(limiter, Blows(most=100))) == 400
    assert limiter.peek("k").used == 400


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(("limits", "promised"), SPANS)
def test_processes_in_any_span(
    common_uri: str, method: str, limits: str, promised: Callable[[int], int]
) -> None:
    context = multiprocessing.get_context(method)
    calls = by_processes(context, makers(method, limits, common_uri), Blows(seconds=0.35))
    assert len(calls) > 100
    assert most_in_a_span(calls, promised) is None


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("limits", TOTALS)
def test_processes_in_total(common_uri: str, method: str, limits: str) -> None:
    context = multiprocessing.get_context(method)
    calls = by_processes(context, makers(method, limits, common_uri), Blows(most=200))
    assert len(calls) == 400
    assert Limiter(limits, common_uri).peek("k").used == 400


def test_too_many_would_be_seen() -> None:
    calls = [Call(at, at + 10_000) for at in range(0, 1_000_000, 10_000)]
    assert most_in_a_span(calls, lambda us: us // 10 + 1) is None
    calls += [Call(500_001, 509_999), Call(500_002, 509_998)]
    assert most_in_a_span(calls, lambda us: us // 10 + 1) == (11, 3)
