"""A process that hits one key without a pause, and is stopped at random instants.

As a program it is that process: stopped.py LIMITS STORE, until it is killed.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from mirab import Limiter

_Answer = TypeVar("_Answer")


@contextmanager
def hammering(limits: str, store: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that hammers, from its first decision on."""
    command = [sys.executable, str(Path(__file__)), limits, store]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "hammers\n"
            yield process
        finally:
            process.kill()


def beside_one_that_is_stopped(
    process: "subprocess.Popen[str]",
    ask: Callable[[], _Answer],
    was_in_the_way: Callable[[_Answer], bool],
) -> tuple[_Answer, float]:
    """Ask until the process held the key's part when it was stopped; the answer, and the seconds it took."""
    chance = random.Random(1)
    for _ in range(20_000):
        time.sleep(chance.uniform(0, 0.001))
        os.kill(process.pid, signal.SIGSTOP)
        try:
            time.sleep(0.0005)  # it stops a little later than it is told to
            begun = time.monotonic()
            answer = ask()
            took = time.monotonic() - begun
        finally:
            os.kill(process.pid, signal.SIGCONT)
        if was_in_the_way(answer):
            return answer, took
    raise AssertionError("it never held anything when it was stopped")


if __name__ == "__main__":
    limiter = Limiter(sys.argv[1], sys.argv[2])
    limiter.allow("k")
    sys.stdout.write("hammers\n")
    sys.stdout.flush()
    while True:
        limiter.acquire_many(["k"] * 100)
