"""token-bucket on its MemoryStorage, the only one that it has."""

from __future__ import annotations

from collections.abc import Iterable

import token_bucket
from scenarios import Limit

from contenders.contender import Contender, Decide


def _make(limits: tuple[Limit, ...]) -> Decide:
    (limit,) = limits
    rate = limit.amount / limit.seconds
    consume = token_bucket.Limiter(rate, limit.amount, token_bucket.MemoryStorage()).consume

    def decide(keys: Iterable[str], admits: bool) -> int:
        wrong = 0
        for key in keys:
            if consume(key) is not admits:
                wrong += 1
        return wrong

    return decide


CONTENDERS = (
    Contender("token-bucket", "peer", _make, "yes or no; unsynchronised: threads lose updates; never forgets a key"),
)
