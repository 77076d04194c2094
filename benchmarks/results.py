"""results/CLASS.json: every figure of every round, from which all else is computed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from measure import Figures, Spread
from protocol import BenchError, Cell

PACKAGES = "packages"


@dataclass
class Result:
    """What a run of one class found."""

    name: str
    title: str
    date: str
    command: str
    rounds: int
    slot_ms: float
    machine: dict[str, str]
    versions: dict[str, str]
    contenders: dict[str, dict[str, str]] = field(default_factory=dict)
    cells: Figures = field(default_factory=dict)
    keys: int = 0
    bytes_per_key: dict[str, list[float]] = field(default_factory=dict)
    fresh: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def kind(self, contender: str) -> str:
        """`mirab`, `peer` or `floor`."""
        return self.contenders[contender]["kind"]

    def scenarios(self) -> list[str]:
        """In the worker's order."""
        return list(dict.fromkeys(cell.scenario for cell in self.cells))

    def of(self, scenario: str, kind: str | None = None) -> list[str]:
        """The contenders of a scenario; of that kind only."""
        there = [cell.contender for cell in self.cells if cell.scenario == scenario]
        return [contender for contender in there if kind in (None, self.kind(contender))]

    def ns(self, scenario: str, contender: str) -> list[float]:
        """Its nanoseconds, one for each round."""
        try:
            return self.cells[Cell(scenario, contender)]
        except KeyError:
            raise BenchError(f"{self.name} has no cell {scenario} of {contender}") from None

    def best_peer(self, scenario: str) -> str | None:
        """The peer with the lowest median there."""
        peers = self.of(scenario, "peer")
        return min(peers, key=lambda peer: Spread.of(self.ns(scenario, peer)).median, default=None)

    def smallest_peer(self) -> str | None:
        """The peer with the fewest bytes per key."""
        peers = [peer for peer in self.bytes_per_key if self.kind(peer) == "peer"]
        return min(peers, key=lambda peer: Spread.of(self.bytes_per_key[peer]).median, default=None)

    def save(self, folder: Path) -> None:
        """A cell a line, so that a rerun is a readable change."""
        told = asdict(self)
        told["cells"] = [{**cell._asdict(), "ns": _round(ns)} for cell, ns in self.cells.items()]
        told["bytes_per_key"] = {name: _round(values) for name, values in self.bytes_per_key.items()}
        save(folder / f"{self.name}.json", told)

    @classmethod
    def load(cls, file: Path) -> Result:
        """As it was saved."""
        told = json.loads(file.read_text())
        told["cells"] = {Cell(cell["scenario"], cell["contender"]): cell["ns"] for cell in told["cells"]}
        return cls(**told)


def save(file: Path, told: dict[str, Any]) -> None:
    """JSON in which a list or an object inside is a line of its own."""
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = [f"  {json.dumps(name)}: {_inside(value)}" for name, value in told.items()]
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _inside(value: object) -> str:
    if isinstance(value, dict) and value:
        lines = [f"    {json.dumps(name)}: {json.dumps(inner)}" for name, inner in value.items()]
        return "{\n" + ",\n".join(lines) + "\n  }"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {json.dumps(inner)}" for inner in value) + "\n  ]"
    return json.dumps(value)


def _round(values: Iterable[float]) -> list[float]:
    """Four figures are more than the machine can tell."""
    return [float(f"{value:.4g}") for value in values]


def load_all(folder: Path, names: Iterable[str]) -> dict[str, Result]:
    """Those of the classes that were measured."""
    return {name: Result.load(file) for name in names if (file := folder / f"{name}.json").exists()}
