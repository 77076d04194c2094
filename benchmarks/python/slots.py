"""One slot: a contender decides for so many milliseconds, and every answer is checked."""

from __future__ import annotations

import gc
import threading
from itertools import repeat
from time import perf_counter_ns
from typing import NamedTuple

from contenders import Contender
from scenarios import Batch, Scenario, key

BATCHES = range(64, 1001)  # decisions between two looks at the clock
BATCH_NS = 200_000


class WrongAnswer(Exception):
    """A limiter admitted what it must refuse, or the other way."""


class Run(NamedTuple):
    """What one thread did."""

    begin: int
    end: int
    decisions: int


class Slots:
    """A contender in a scenario, with the state that its slots share."""

    def __init__(self, contender: Contender, scenario: Scenario) -> None:
        self._decide = contender.make(scenario.limits)
        self._scenario = scenario
        self._walks = [scenario.walk() for _ in range(scenario.threads)]
        self._batch = BATCHES[0]
        self._fill()

    def measure(self, ms: float) -> dict[str, float | int]:
        """Nanoseconds per decision, after a warm-up of a tenth."""
        warm = self._run(self._walks[0], ms / 10)
        fitting = warm.decisions * BATCH_NS // (warm.end - warm.begin)
        self._batch = max(BATCHES[0], min(fitting, BATCHES[-1]))
        runs = [self._run(self._walks[0], ms)] if self._scenario.threads == 1 else self._run_threads(ms)
        count = sum(run.decisions for run in runs)
        wall = max(run.end for run in runs) - min(run.begin for run in runs)
        end_threads()
        return {"ns": wall / count, "count": count}

    def _fill(self) -> None:
        """The state that is there when slots begin: every key came once, and what admits once has."""
        if self._scenario.keys > 1:
            check(self._decide(map(key, range(self._scenario.keys)), True), True)
        if not self._scenario.admits:
            check(self._decide(repeat(key(0), 1), True), True)
        end_threads()
        gc.collect()
        gc.freeze()  # no collection in a later slot goes through the state of all contenders

    def _run(self, walk: Batch, ms: float) -> Run:
        decide, batch, admits = self._decide, self._batch, self._scenario.admits
        count = wrong = 0
        begin = now = perf_counter_ns()
        until = begin + int(ms * 1e6)
        while now < until:
            wrong += decide(walk(batch), admits)
            count += batch
            now = perf_counter_ns()
        check(wrong, admits)
        return Run(begin, now, count)

    def _run_threads(self, ms: float) -> list[Run]:
        runs: list[Run] = []
        faults: list[Exception] = []
        barrier = threading.Barrier(len(self._walks))

        def work(walk: Batch) -> None:
            try:
                barrier.wait()
                runs.append(self._run(walk, ms))
            except Exception as fault:
                faults.append(fault)

        threads = [threading.Thread(target=work, args=(walk,)) for walk in self._walks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for fault in faults:
            raise fault
        return runs


def check(wrong: int, admits: bool) -> None:
    """Whether all answers were as they should be."""
    if wrong:
        raise WrongAnswer(f"{wrong} decisions were {'refused' if admits else 'admitted'}")


def end_threads() -> None:
    """What a contender still has running would take its time from the next one."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
