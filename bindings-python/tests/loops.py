"""Event loops for the tests: asyncio's own, and uvloop's where it is installed."""

import asyncio
import importlib
import importlib.util
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from redis_server import PATIENCE

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]

RUNS: dict[str, Run] = {"asyncio": asyncio.run}
if importlib.util.find_spec("uvloop"):
    RUNS["uvloop"] = importlib.import_module("uvloop").run

every_loop = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
"""Gives a test `run`, which runs a coroutine in a loop of its own."""


async def until(holds: Callable[[], Awaitable[object] | bool]) -> None:
    """Wait until it holds, as it does in a moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = holds()
        if answer if isinstance(answer, bool) else await answer:
            return
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.001)
