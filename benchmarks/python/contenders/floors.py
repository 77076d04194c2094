"""What cannot be beaten from Python: a call into C that does nothing, and the least that pure Python can do."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

from scenarios import HOT, HOT_4T, Limit

from contenders.contender import Contender, Decide


def _len(_: tuple[Limit, ...]) -> Decide:
    def decide(keys: Iterable[str], _: bool) -> int:
        wrong = 0
        for key in keys:
            if len(key) == 0:
                wrong += 1
        return wrong

    return decide


def _dict(limits: tuple[Limit, ...]) -> Decide:
    """Each key's time at which its bucket is full again."""
    (limit,) = limits
    full_at: dict[str, float] = {}
    interval = limit.seconds / limit.amount
    depth = limit.seconds - interval

    def allow(key: str) -> bool:
        now = monotonic()
        before = max(full_at.get(key, now), now)
        if before - now > depth:
            return False
        full_at[key] = before + interval
        return True

    def decide(keys: Iterable[str], admits: bool) -> int:
        wrong = 0
        for key in keys:
            if allow(key) is not admits:
                wrong += 1
        return wrong

    return decide


CONTENDERS = (
    Contender("len(key)", "floor", _len, "a call of a builtin", scenarios=(HOT, HOT_4T), keeps_keys=False),
    Contender("dict", "floor", _dict, "a GCRA in a dict, in plain Python: unsynchronised, never forgets a key"),
)
