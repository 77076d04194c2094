"""What the benchmarks compute from their figures, on figures that are known."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from measure import Spread, difference, order, ratio
from protocol import BenchError, Cell
from results import Result

CELLS = [Cell(scenario, contender) for scenario in ("hot", "denied", "keys") for contender in "abcd"]


def result(**cells: list[float]) -> Result:
    """A class with one scenario; who is not mirab is a peer."""
    contenders = {name: {"kind": "mirab" if name == "mirab" else "peer", "note": ""} for name in cells}
    return Result(
        name="some-memory",
        title="Some",
        date="2026-01-01",
        command="make bench",
        rounds=3,
        slot_ms=30.0,
        machine={"cpu": "some"},
        versions={"mirab": "0.1.0"},
        contenders=contenders,
        cells={Cell("hot", name): values for name, values in cells.items()},
        keys=1000,
        bytes_per_key={"mirab": [30.0, 32.0, 31.0]},
    )


@pytest.mark.parametrize(
    ("values", "low", "median", "high"),
    [
        ([7.0], 7, 7, 7),
        ([3.0, 1.0], 1.5, 2, 2.5),
        ([5.0, 1.0, 4.0, 2.0, 3.0], 2, 3, 4),
        ([1.0, 2.0, 3.0, 1000.0], 1.75, 2.5, 252.25),
    ],
)
def test_a_spread_is_the_median_between_its_quartiles(
    values: list[float], low: float, median: float, high: float
) -> None:
    assert Spread.of(values) == Spread(median, low, high)


def test_a_median_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing"):
        Spread.of([])


def test_a_ratio_is_that_of_each_round_and_not_of_the_medians() -> None:
    """The machine became twice as slow after each round, for both."""
    assert ratio([20.0, 40.0, 80.0], [10.0, 20.0, 40.0]) == Spread(2, 2, 2)
    assert ratio([10.0, 20.0, 90.0], [10.0, 10.0, 10.0]) == Spread(2, 1.5, 5.5)
    assert ratio([1.0, 9.0, 4.0], [1.0, 3.0, 4.0]).median == 1  # of the medians: 4 / 3


def test_a_difference_is_that_of_each_round() -> None:
    assert difference([20.0, 31.0, 55.0], [10.0, 20.0, 40.0]) == Spread(11, 10.5, 13)


def test_other_rounds_are_not_compared() -> None:
    with pytest.raises(ValueError, match="not measured together"):
        ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize("number", range(30))
def test_every_round_has_every_cell_and_keeps_a_scenario_together(number: int) -> None:
    turned = order(CELLS, number)
    assert sorted(turned) == sorted(CELLS)
    changes = sum(one.scenario != other.scenario for one, other in pairwise(turned))
    assert changes == 2


def test_nobody_always_follows_the_same() -> None:
    before: Counter[tuple[str, str]] = Counter()
    rounds = 24
    for number in range(rounds):
        names = [cell.contender for cell in order(CELLS, number) if cell.scenario == "hot"]
        before.update(pairwise(names))
    assert max(before.values()) <= rounds / 2
    firsts = Counter(order(CELLS, number)[0] for number in range(rounds))
    assert max(firsts.values()) <= rounds / 4


def test_the_best_peer_has_the_lowest_median() -> None:
    """The one with the lowest mean, or the luckiest round, is not."""
    found = result(mirab=[1.0, 1.0, 1.0], lucky=[2.0, 9.0, 9.0], best=[5.0, 5.0, 50.0], other=[6.0, 6.0, 6.0])
    assert found.best_peer("hot") == "best"
    assert result(mirab=[1.0, 1.0, 1.0]).best_peer("hot") is None


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = result(mirab=[1.0, 2.5, 3.0], peer=[4.0, 5.0, 6.0])
    found.save(tmp_path)
    assert Result.load(tmp_path / "some-memory.json") == found


def test_a_cell_that_is_not_there_is_told() -> None:
    with pytest.raises(BenchError, match="some-memory has no cell hot of nobody"):
        result(mirab=[1.0]).ns("hot", "nobody")
