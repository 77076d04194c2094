"""mirab in memory, asked for yes or no, and for the full decision."""

from __future__ import annotations

from collections.abc import Iterable

from scenarios import ALL, Limit

from contenders.contender import Contender, Decide
from mirab import Limiter

# The default is a million keys, and then one is forgotten for each that comes.
STORE = "memory:?max_keys=4000000"


def _limiter(limits: tuple[Limit, ...]) -> Limiter:
    return Limiter("; ".join(f"{limit.amount} per {limit.seconds} s" for limit in limits), store=STORE)


def _allow(limits: tuple[Limit, ...]) -> Decide:
    allow = _limiter(limits).allow

    def decide(keys: Iterable[str], admits: bool) -> int:
        wrong = 0
        for key in keys:
            if allow(key) is not admits:
                wrong += 1
        return wrong

    return decide


def _acquire(limits: tuple[Limit, ...]) -> Decide:
    acquire = _limiter(limits).acquire

    def decide(keys: Iterable[str], admits: bool) -> int:
        wrong = 0
        for key in keys:
            if acquire(key).allowed is not admits:
                wrong += 1
        return wrong

    return decide


CONTENDERS = (
    Contender("mirab.allow", "mirab", _allow, "yes or no", scenarios=ALL),
    Contender("mirab.acquire", "mirab", _acquire, "the full decision, of which `allowed` is read", scenarios=ALL),
)
