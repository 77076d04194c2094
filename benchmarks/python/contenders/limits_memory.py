"""limits on its MemoryStorage: the storage that its documentation names for one process, and its three strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)
from scenarios import ENDLESS, Limit

from contenders.contender import Contender, Decide


def _by(strategy: type[RateLimiter]) -> Callable[[tuple[Limit, ...]], Decide]:
    def make(limits: tuple[Limit, ...]) -> Decide:
        (limit,) = limits
        # A log of the last hour would only grow, and each request moves all of it: here it is of the last second.
        short = strategy is MovingWindowRateLimiter and limit == ENDLESS
        item = RateLimitItemPerSecond(limit.amount, 1 if short else limit.seconds)
        hit = strategy(MemoryStorage()).hit

        def decide(keys: Iterable[str], admits: bool) -> int:
            wrong = 0
            for key in keys:
                if hit(item, key) is not admits:
                    wrong += 1
            return wrong

        return decide

    return make


CONTENDERS = (
    Contender("limits.fixed", "peer", _by(FixedWindowRateLimiter), "yes or no; a refusal is charged, too"),
    Contender("limits.sliding", "peer", _by(SlidingWindowCounterRateLimiter), "yes or no; an estimate by two counters"),
    Contender("limits.moving", "peer", _by(MovingWindowRateLimiter), "yes or no; keeps an entry for each request"),
)
