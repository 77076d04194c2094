"""The worker's side of the conversation: one process per language, one JSON object a line.

A worker says hello with what it has, and then answers each line it is sent with one line:

    worker  {"class": "rust-memory", "versions": {"governor": "0.10.4"},
             "contenders": {"governor-dashmap": {"kind": "peer", "note": "says yes or no only"}},
             "cells": [{"scenario": "hot", "contender": "mirab.allow"}],
             "bytes": ["mirab"], "fresh": ["mirab.allow"]}
    parent  {"scenario": "hot", "contender": "mirab.allow", "ms": 30}
    worker  {"ns": 41.7, "count": 719360}

`{"error": "..."}` in place of an answer ends the run. The worker ends when its stdin does.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

KINDS = ("mirab", "peer", "floor")
# The first slot of a scenario may fill a million keys in a slow language.
ANSWER_SECONDS = 120.0


class BenchError(Exception):
    """What ends the run: its text says whose fault it is."""


class Cell(NamedTuple):
    """One contender in one scenario: what a slot measures."""

    scenario: str
    contender: str


@dataclass(frozen=True)
class Command:
    """How a worker is started."""

    name: str
    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Hello:
    """What a worker has."""

    name: str
    versions: dict[str, str]
    contenders: dict[str, dict[str, str]]
    cells: list[Cell]
    bytes: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, answer: dict[str, Any]) -> Hello:
        """Checks that all is there, so that later code need not."""
        try:
            hello = cls(
                name=answer["class"],
                versions=dict(answer["versions"]),
                contenders=dict(answer["contenders"]),
                cells=[Cell(cell["scenario"], cell["contender"]) for cell in answer["cells"]],
                bytes=list(answer.get("bytes", ())),
                fresh=list(answer.get("fresh", ())),
            )
        except (KeyError, TypeError, ValueError) as wrong:
            raise BenchError(f"its hello is not understood: {wrong!r} in {answer}") from wrong
        for name, about in hello.contenders.items():
            if about.get("kind") not in KINDS:
                raise BenchError(f'its contender {name} is of kind "{about.get("kind")}": it must be one of {KINDS}')
        named = {cell.contender for cell in hello.cells} | {*hello.bytes, *hello.fresh}
        if unknown := named - hello.contenders.keys():
            raise BenchError(f"it does not say what its contenders are: {', '.join(sorted(unknown))}")
        if len(set(hello.cells)) < len(hello.cells):
            raise BenchError("it names a cell twice")
        return hello


class Worker:
    """A running worker; leaving its `with` block ends it."""

    def __init__(self, command: Command, seconds: float = ANSWER_SECONDS) -> None:
        self.command = command
        self._seconds = seconds
        self._late = False
        self._process = subprocess.Popen(
            list(command.argv),
            cwd=command.folder,
            env=command.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self.hello = self._hello()
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, cell: Cell, ms: float) -> float:
        """Nanoseconds per decision over one slot."""
        where = f"in {cell.scenario} of {cell.contender}"
        self._send({"scenario": cell.scenario, "contender": cell.contender, "ms": ms}, where)
        answer = self._receive(where)
        ns, count = answer.get("ns"), answer.get("count")
        if not isinstance(ns, (int, float)) or not isinstance(count, int) or not (ns > 0 and count > 0):
            raise self._fault(f"{where} it answered {answer}, which is no measurement")
        return float(ns)

    def _hello(self) -> Hello:
        answer = self._receive("before its hello")
        try:
            return Hello.read(answer)
        except BenchError as wrong:
            raise self._fault(str(wrong)) from None

    def _send(self, question: dict[str, Any], where: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._fault(f"{where} it was gone: exit code {self._process.wait()}") from None

    def _receive(self, where: str) -> dict[str, Any]:
        assert self._process.stdout
        timer = threading.Timer(self._seconds, self._too_late)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if self._late:
            raise self._fault(f"{where} it said nothing for {self._seconds:g} s, and was ended")
        if not line:
            raise self._fault(f"{where} it ended with exit code {self._process.wait()}")
        return self._parsed(line, where)

    def _parsed(self, line: str, where: str) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._fault(f"{where} it said {line.strip()!r}, which is not a JSON object")
        if "error" in answer:
            raise self._fault(f"{where}: {answer['error']}")
        return answer

    def _too_late(self) -> None:
        self._late = True
        self._process.kill()

    def _fault(self, what: str) -> BenchError:
        return BenchError(f"worker {self.command.name}: {what}")

    def _end(self) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):  # it was gone before us
                self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def ask_once(command: Command, *arguments: str, seconds: float = 300.0) -> dict[str, float]:
    """A worker that measures one thing in a process of its own: `--bytes mirab 1000000`."""
    who = f"worker {command.name} {' '.join(arguments)}"
    try:
        done = subprocess.run(
            [*command.argv, *arguments],
            cwd=command.folder,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{who}: it said nothing for {seconds:g} s, and was ended") from None
    try:
        answer = json.loads(done.stdout)
        if done.returncode == 0 and "error" not in answer:
            return {name: float(value) for name, value in answer.items()}
        what = answer.get("error", f"exit code {done.returncode}")
    except (ValueError, TypeError, AttributeError):
        what = f"exit code {done.returncode}, and it said {done.stdout.strip()!r}"
    raise BenchError(f"{who}: {what}")
