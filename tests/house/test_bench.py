"""`make bench` stops with one clear line when a worker errs, dies or falls silent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apps import ROOT
from measure import Seat, measure
from protocol import BenchError, Cell, Command, Worker, ask_once

HELLO = """
import json, sys, time
cells = [{"scenario": "hot", "contender": name} for name in ("mirab", "peer")]
hello = {"class": "some", "versions": {}, "contenders": {"mirab": {"kind": "mirab"}, "peer": {"kind": "peer"}},
         "cells": cells}
def say(what): print(json.dumps(what), flush=True)
"""
ANSWERS = """
say(hello)
for line in sys.stdin:
    question = json.loads(line)
"""
GOOD = ANSWERS + "    say({'ns': 40.0 if question['contender'] == 'mirab' else 80.0, 'count': 1000})\n"
HOT = Cell("hot", "mirab")


def command(folder: Path, program: str) -> Command:
    (folder / "worker.py").write_text(HELLO + program)
    return Command("some", [sys.executable, "worker.py"], folder)


def test_every_round_asks_every_cell(tmp_path: Path) -> None:
    heard: list[int] = []
    with Worker(command(tmp_path, GOOD)) as worker:
        seats = {cell: Seat(worker, cell) for cell in worker.hello.cells}
        figures = measure(seats, 3, 1, heard.append)
    assert figures == {HOT: [40.0] * 3, Cell("hot", "peer"): [80.0] * 3}
    assert heard == [1, 2, 3]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("    say({'error': '3 of 512 were admitted: it must be 512'})", "in hot of mirab: 3 of 512 were admitted"),
        ("    sys.exit(7)", "in hot of mirab it ended with exit code 7"),
        ("    print('hello', flush=True)", "in hot of mirab it said 'hello', which is not a JSON object"),
        ("    say({'ns': 0, 'count': 1})", "which is no measurement"),
        ("    say({'ns': 12.5})", "which is no measurement"),
        ("    time.sleep(60)", "in hot of mirab it said nothing for 0.5 s, and was ended"),
    ],
)
def test_a_worker_that_errs_in_a_slot_is_told(tmp_path: Path, program: str, told: str) -> None:
    with Worker(command(tmp_path, ANSWERS + program), seconds=0.5) as worker:
        with pytest.raises(BenchError, match=r"^worker some: ") as error:
            worker.ask(HOT, 1)
        assert told in str(error.value)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("sys.exit(3)", "before its hello it ended with exit code 3"),
        ("say({'error': 'no mirab here'})", "before its hello: no mirab here"),
        ("say({'class': 'some'})", "its hello is not understood"),
        ("cells[0]['contender'] = 'stranger'; say(hello)", "it does not say what its contenders are: stranger"),
        ("cells[0] = cells[1]; say(hello)", "it names a cell twice"),
        ("hello['contenders']['peer']['kind'] = 'friend'; say(hello)", 'its contender peer is of kind "friend"'),
        ("time.sleep(60)", "before its hello it said nothing for 0.5 s"),
    ],
)
def test_a_hello_that_is_wrong_is_told(tmp_path: Path, program: str, told: str) -> None:
    with pytest.raises(BenchError, match=r"^worker some: ") as error, Worker(command(tmp_path, program), seconds=0.5):
        pass
    assert told in str(error.value)


def test_a_worker_that_died_between_slots_is_told(tmp_path: Path) -> None:
    with Worker(command(tmp_path, "say(hello); sys.stdin.close(); sys.exit(4)")) as worker:
        with pytest.raises(BenchError, match="exit code 4"):
            worker.ask(HOT, 1)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("say({'error': 'key 7 was refused'}); sys.exit(1)", "worker some --bytes mirab 10: key 7 was refused"),
        ("sys.exit(9)", "exit code 9, and it said ''"),
        ("print('much')", "exit code 0, and it said 'much'"),
        ("say([1])", "it said '[1]'"),
    ],
)
def test_what_is_asked_once_is_told_too(tmp_path: Path, program: str, told: str) -> None:
    with pytest.raises(BenchError) as error:
        ask_once(command(tmp_path, program), "--bytes", "mirab", "10")
    assert told in str(error.value)


def test_what_is_asked_once_is_answered(tmp_path: Path) -> None:
    assert ask_once(command(tmp_path, "say({'bytes_per_key': 33})"), "--bytes", "mirab", "10") == {"bytes_per_key": 33}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "cobol-memory"], "bench: no class is called cobol-memory: there are rust-memory, "),
        (["--rounds", "0"], "bench: 0 rounds of 30 ms: both must be above 0"),
    ],
)
def test_what_cannot_be_run_is_told_before_anything_is_built(arguments: list[str], told: str) -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/run.py", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1
