"""Hits one key from many threads or processes at once, and notes when each admitted call began and ended.

It is a module of its own, since a process that is not forked has to import it.
"""

import threading
import time
from bisect import insort
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any, NamedTuple

from mirab import Limiter

PATIENCE = 30  # seconds for whatever takes a moment


class Call(NamedTuple):
    """An admitted call; it was decided in between, whenever that was. Nanoseconds."""

    began: int
    ended: int


class Blows(NamedTuple):
    """How one thread or process hits: so often, but no longer than that, by this clock."""

    most: int = 10**9
    seconds: float = PATIENCE
    now: Callable[[], int] = time.monotonic_ns


def hammer(limiter: Limiter, blows: Blows) -> list[Call]:
    """Ask again and again, and return the calls that were admitted."""
    now = blows.now
    deadline = now() + int(blows.seconds * 1e9)
    calls = []
    for _ in range(blows.most):
        began = now()
        if began >= deadline:
            break
        if limiter.allow("k"):
            calls.append(Call(began, now()))
    return calls


def by_threads(limiter: Limiter, blows: Blows, threads: int = 8) -> list[Call]:
    """Hammer from threads that begin together."""
    together = threading.Barrier(threads, timeout=PATIENCE)

    def work(_: int) -> list[Call]:
        together.wait()
        return hammer(limiter, blows)

    with ThreadPoolExecutor(threads) as pool:
        return [call for calls in pool.map(work, range(threads)) for call in calls]


def by_processes(
    context: BaseContext, make: Callable[[], Limiter], blows: Blows, processes: int = 4
) -> list[Call]:
    """Hammer from processes that begin together, each with the limiter that `make` gives it."""
    together = context.Barrier(processes, timeout=PATIENCE)
    results: Any = context.Queue()
    children = [
        context.Process(target=_child, args=(make, blows, together, results))  # type: ignore[attr-defined]
        for _ in range(processes)
    ]
    for child in children:
        child.start()
    try:
        calls = [call for _ in children for call in results.get(timeout=PATIENCE)]
        for child in children:
            child.join(PATIENCE)
            assert child.exitcode == 0
    finally:
        for child in children:
            child.kill()
            child.join()
    return calls


def _child(make: Callable[[], Limiter], blows: Blows, together: Any, results: Any) -> None:
    limiter = make()
    together.wait()
    results.put(hammer(limiter, blows))


def most_in_a_span(calls: list[Call], promised: Callable[[int], int]) -> tuple[int, int] | None:
    """Return a span in microseconds with more calls wholly inside than promised, and their number.

    Every span from the beginning of one call to the end of another is looked at. Limiters count whole
    microseconds, so that two instants may lie one further apart than they are.
    """
    ends: list[int] = []
    for call in sorted(calls, reverse=True):
        insort(ends, call.ended)
        for count, end in enumerate(ends, 1):
            span = (end - call.began) // 1000 + 1
            if count > promised(span):
                return span, count
    return None
