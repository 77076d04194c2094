"""Rounds of slots, and what their figures say: medians with quartiles, never a mean.

What is compared is measured at the same time: every round runs every cell once, and a ratio is taken within each
round, before the median.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from protocol import BenchError, Cell, Worker

Figures = dict[Cell, list[float]]
T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """A median between its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Quartiles lie between the values that are next to them."""
        if not values:
            raise ValueError("a median of nothing")
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """How many times `above` is `below`: the ratio of each round, then their median."""
    return Spread.of([one / other for one, other in _rounds(above, below)])


def difference(above: Sequence[float], below: Sequence[float]) -> Spread:
    """By how much `above` is above `below`, in each round."""
    return Spread.of([one - other for one, other in _rounds(above, below)])


def _rounds(one: Sequence[float], other: Sequence[float]) -> Iterable[tuple[float, float]]:
    if len(one) != len(other):
        raise ValueError(f"{len(one)} rounds beside {len(other)}: they were not measured together")
    return zip(one, other)


@dataclass(frozen=True)
class Seat:
    """A worker that answers for a cell, under the name that it has there."""

    worker: Worker
    cell: Cell


def order(cells: Sequence[Cell], number: int) -> list[Cell]:
    """The cells of that round: scenarios and their contenders begin elsewhere each time, every second one backwards.

    The contenders of a scenario stay next to each other, but nobody always follows the same.
    """
    scenarios = list(dict.fromkeys(cell.scenario for cell in cells))
    turned: list[Cell] = []
    for scenario in _turned(scenarios, number):
        turned += _turned([cell for cell in cells if cell.scenario == scenario], number)
    return turned


def _turned(items: list[T], number: int) -> list[T]:
    start = number // 2 % len(items)
    turned = items[start:] + items[:start]
    return turned[::-1] if number % 2 else turned


def measure(seats: dict[Cell, Seat], rounds: int, ms: float, done: Callable[[int], None] = lambda _: None) -> Figures:
    """Nanoseconds per decision of each cell, one for each round. `done` hears of every round."""
    if rounds < 1 or ms <= 0:
        raise BenchError(f"{rounds} rounds of {ms:g} ms: both must be above 0")
    cells = list(seats)
    for cell in cells:  # state is made here, so that no round waits for it
        seats[cell].worker.ask(seats[cell].cell, 1)
    figures: Figures = {cell: [] for cell in cells}
    for number in range(rounds):
        for cell in order(cells, number):
            figures[cell].append(seats[cell].worker.ask(seats[cell].cell, ms))
        done(number + 1)
    return figures
