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
    """A worker, and how many keys it is asked for where it runs in a process of its own."""

    name: str
    title: str
    worker: Callable[[], Command]
    keys: int
    beside: Beside | None = None


SAME_CALL = Beside(
    prefix="rust:",
    worker=environments.rust,
    scenarios=("hot", "hot_2t", "denied", "keys_100k"),
    contenders=("mirab.allow", "mirab.acquire"),
)

CLASSES = (
    Class("rust-memory", "Rust, in memory", environments.rust, keys=1_000_000),
    Class("python-memory", "Python, in memory", environments.python, keys=200_000),
    Class("node-memory", "Node, in memory", environments.node, keys=200_000),
    Class("c-memory", "C, in memory", environments.c, keys=1_000_000, beside=SAME_CALL),
)
