"""throttled-py on its MemoryStore, which keeps 1024 keys unless told otherwise: here as many as the scenarios have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from scenarios import Limit
from throttled import MemoryStore, RateLimiterType, Throttled, per_duration

from contenders.contender import Contender, Decide

MAX_SIZE = 4_000_000


def _using(algorithm: RateLimiterType) -> Callable[[tuple[Limit, ...]], Decide]:
    def make(limits: tuple[Limit, ...]) -> Decide:
        (limit,) = limits
        quota = per_duration(timedelta(seconds=limit.seconds), limit.amount, burst=limit.amount)
        store = MemoryStore(options={"MAX_SIZE": MAX_SIZE})
        ask = Throttled(using=algorithm.value, quota=quota, store=store).limit

        def decide(keys: Iterable[str], admits: bool) -> int:
            wrong = 0
            for key in keys:
                if ask(key).limited is admits:
                    wrong += 1
            return wrong

        return decide

    return make


NOTE = "a full answer, of which `limited` is read; floating point"
CONTENDERS = (
    Contender("throttled.gcra", "peer", _using(RateLimiterType.GCRA), NOTE),
    Contender("throttled.token_bucket", "peer", _using(RateLimiterType.TOKEN_BUCKET), NOTE),
)
