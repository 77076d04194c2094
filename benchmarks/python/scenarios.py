"""What each scenario asks: whose keys, under which limits, and what the right answer is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice, repeat

WALK = 1 << 20  # random steps, then the same again
HOUR, DAY = 3600, 86_400

Batch = Callable[[int], Iterable[str]]


@dataclass(frozen=True)
class Limit:
    """So many in so many seconds: for a bucket its capacity and refill, for a window its width."""

    amount: int
    seconds: int


ENDLESS = Limit(1_000_000_000, HOUR)
ONCE = Limit(1, HOUR)
# A unit comes back in three minutes: what is held of a key is still live when its turn comes again, in every store.
# (Node has the same limit: there a timer reaches no further than 24.8 days.)
LASTING = Limit(10_000, 20 * DAY)
POLICY = tuple(Limit(1_000_000_000, seconds) for seconds in (60, HOUR, DAY))


@dataclass(frozen=True)
class Scenario:
    """Keys, limits, and whether they admit."""

    name: str
    limits: tuple[Limit, ...] = (ENDLESS,)
    admits: bool = True
    keys: int = 1
    threads: int = 1

    def walk(self) -> Batch:
        """Gives the next so many keys, in the order in which they come."""
        if self.keys == 1:
            return partial(repeat, key(0))
        return partial(islice, chain.from_iterable(repeat(_random_order(self.keys))))


HOT = Scenario("hot")
HOT_4T = Scenario("hot_4t", threads=4)
DENIED = Scenario("denied", limits=(ONCE,), admits=False)
KEYS_100K = Scenario("keys_100k", limits=(LASTING,), keys=100_000)
POLICY_1 = Scenario("policy_1", limits=POLICY[:1])
POLICY_3 = Scenario("policy_3", limits=POLICY)

OF_ONE_LIMIT = (HOT, HOT_4T, DENIED, KEYS_100K)
ALL = (*OF_ONE_LIMIT, POLICY_1, POLICY_3)


def key(number: int) -> str:
    """16 bytes, such as user:00000012345."""
    return f"user:{number:011}"


@cache
def _random_order(keys: int) -> list[str]:
    names = [key(number) for number in range(keys)]
    return random.Random(keys).choices(names, k=WALK)
