"""Event loops for the tests: asyncio's own, and uvloop's where it is installed."""

import asyncio
import importlib
import importlib.util
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]

RUNS: dict[str, Run] = {"asyncio": asyncio.run}
if importlib.util.find_spec("uvloop"):
    RUNS["uvloop"] = importlib.import_module("uvloop").run

every_loop = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
"""Gives a test `run`, which runs a coroutine in a loop of its own."""
