"""What a contender is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scenarios import OF_ONE_LIMIT, Limit, Scenario

# Decides once for each key, and counts the answers that are not as they should be. The loop is each contender's own, so
# that the call that is measured is written out in it, as in an app: no wrapper's time is counted.
Decide = Callable[[Iterable[str], bool], int]


@dataclass(frozen=True)
class Contender:
    """A way to limit, made anew for each scenario."""

    name: str
    kind: str
    make: Callable[[tuple[Limit, ...]], Decide]
    note: str = ""
    scenarios: tuple[Scenario, ...] = OF_ONE_LIMIT
    keeps_keys: bool = True

    def about(self) -> dict[str, str]:
        """How the report is told."""
        return {"kind": self.kind, "note": self.note} if self.note else {"kind": self.kind}
