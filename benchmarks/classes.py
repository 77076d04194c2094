"""What is measured together: a class is one language on one kind of store. A new class is a line here and a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import environments
from protocol import Cell, Command


@dataclass(frozen=True)
class Beside:
    """Cells of another worker that are measured in the same rounds, for what its language costs above it."""

    prefix: str
    worker: Callable[[], Command]
    scenarios: tuple[str, ...]
    contenders: tuple[str, ...]

    def takes(self, cell: Cell) -> bool:
        """Whether the cell is one of them."""
        return cell.scenario in self.scenarios and cell.contender in self.contenders


@dataclass(frozen=True)
class Class:
    """A worker, and what is measured beside it."""

    name: str
    title: str
    worker: Callable[[], Command]
    beside: Beside | None = None


SAME_CALL = Beside(
    prefix="rust:",
    worker=environments.rust,
    scenarios=("hot", "hot_2t", "denied", "keys_100k"),
    contenders=("mirab.allow", "mirab.acquire"),
)

CLASSES = (
    Class("rust-memory", "Rust, in memory", environments.rust),
    Class("python-memory", "Python, in memory", environments.python),
    Class("node-memory", "Node, in memory", environments.node),
    Class("c-memory", "C, in memory", environments.c, beside=SAME_CALL),
)
