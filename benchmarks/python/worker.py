"""The worker of the Python class.

    worker.py                               slots, asked for on stdin
    worker.py --bytes mirab.allow 100000    bytes per key
    worker.py --startup                     milliseconds of `import mirab`

What it is asked and answers stands in ../README.md, and is checked by ../protocol.py.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from contenders import ALL as CONTENDERS
from scenarios import ALL as SCENARIOS
from scenarios import LASTING, key
from slots import Slots, check, end_threads

PEERS = ("mirab", "limits", "throttled-py", "token-bucket")
IMPORTS = 11
IMPORT = "import time; begin = time.perf_counter(); import mirab; print((time.perf_counter() - begin) * 1000)"


def say(answer: dict[str, Any]) -> None:
    """One line."""
    print(json.dumps(answer), flush=True)


def hello() -> dict[str, Any]:
    """What there is to measure, the contenders of a scenario next to each other."""
    return {
        "class": "python-memory",
        "versions": {"python": platform.python_version()} | {peer: importlib.metadata.version(peer) for peer in PEERS},
        "contenders": {contender.name: contender.about() for contender in CONTENDERS},
        "cells": [
            {"scenario": scenario.name, "contender": contender.name}
            for scenario in SCENARIOS
            for contender in CONTENDERS
            if scenario in contender.scenarios
        ],
        "bytes": [contender.name for contender in CONTENDERS if contender.keeps_keys],
    }


def answer_slots() -> None:
    """Every line of stdin is a slot."""
    say(hello())
    made: dict[tuple[str, str], Slots] = {}
    for line in sys.stdin:
        question = json.loads(line)
        cell = (question["contender"], question["scenario"])
        try:
            if cell not in made:
                contender = next(each for each in CONTENDERS if each.name == cell[0])
                scenario = next(each for each in contender.scenarios if each.name == cell[1])
                made[cell] = Slots(contender, scenario)
            say(made[cell].measure(question["ms"]))
        except StopIteration:
            say({"error": f"no cell {cell}"})
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})


def bytes_per_key(name: str, count: int) -> float:
    """By how much this process grows for each key that comes for the first time."""
    contender = next(each for each in CONTENDERS if each.name == name)
    decide = contender.make((LASTING,))
    keys = [key(number) for number in range(count)]
    gc.collect()
    before = _resident()
    check(decide(keys, True), True)
    end_threads()
    gc.collect()
    return (_resident() - before) / count


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def startup() -> float:
    """The median of what fresh interpreters measure around `import mirab`."""
    times = [subprocess.check_output([sys.executable, "-c", IMPORT], text=True) for _ in range(IMPORTS)]
    return statistics.median(map(float, times))


def main() -> None:
    parser = argparse.ArgumentParser(description="The worker of the Python class.")
    parser.add_argument("--bytes", nargs=2, metavar=("CONTENDER", "KEYS"))
    parser.add_argument("--startup", action="store_true")
    wanted = parser.parse_args()
    if wanted.bytes:
        say({"bytes_per_key": bytes_per_key(wanted.bytes[0], int(wanted.bytes[1]))})
    elif wanted.startup:
        say({"ms": startup()})
    else:
        answer_slots()


if __name__ == "__main__":
    main()
