"""What a Flask client is told about the limits of a request."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import Response
from werkzeug.exceptions import ServiceUnavailable, TooManyRequests

from mirab._mirab import Decision, Limit, Limiter
from mirab.http import Answers

if TYPE_CHECKING:
    from mirab._flask_rule import DeductWhen, Rule


class Told:
    """How the clients of an app are told: with X-RateLimit headers, and without."""

    def __init__(self, max_hold: float) -> None:
        """Tell them that what would be held longer is refused."""
        self.briefly = Answers(["draft-8"], max_hold=max_hold)
        self.fully = Answers(["draft-8", "x-ratelimit-epoch"], max_hold=max_hold)


@dataclass(frozen=True)
class Charge:
    """One limit of a rule, as it is charged for a request."""

    rule: "Rule"
    limit: Limit
    key: str | bytes
    cost: int


@dataclass(frozen=True)
class RequestLimit:
    """Where one limit stood when a request was decided."""

    limit: Limit
    """The limit."""
    key: str | bytes
    """Whose bucket it was."""
    breached: bool
    """Whether this limit refused the request; where its key is blocked, each limit does."""
    remaining: int
    """Units that are left."""
    reset_at: int
    """When nothing will be in use any more, in whole seconds since 1970, rounded up."""
    shared: bool
    """Whether it comes from `shared_limit`."""
    decision: Decision
    """The decision that it was part of, with everything that is known."""

    @property
    def window(self) -> tuple[int, int]:
        """`reset_at` and `remaining`."""
        return self.reset_at, self.remaining


@dataclass(frozen=True, eq=False)
class Answer:
    """One decision over the charges of one key and cost, and when it was made."""

    charges: Sequence[Charge]
    limiter: Limiter
    decision: Decision
    decided_at: float
    deduct_when: "DeductWhen | None"
    """Whether the response of the request is counted; None when each is."""
    max_hold: float
    """The longest that it may hold the request."""
    told_by: "Told"
    """How clients are told."""

    @property
    def held_too_long(self) -> bool:
        """Whether its queue was too long: then it is a refusal, and is to be given back."""
        return self.decision.delay > self.max_hold

    @property
    def refuses(self) -> bool:
        """Whether the request may not pass."""
        return self.held_too_long or not self.decision.allowed

    @property
    def saying(self) -> int:
        """The place of the charge whose limit says most."""
        if self.held_too_long:
            waits = [
                standing.reset_after if charge.limit.longest_delay else 0.0
                for charge, standing in zip(self.charges, self.decision.standings, strict=True)
            ]
            return waits.index(max(waits))
        return self.decision.limit_index or 0

    def limits(self) -> list[RequestLimit]:
        """Return where each of the charged limits stood."""
        standings = self.decision.standings
        if self.decision.blocked:  # the block's own stands in their place
            standings *= len(self.charges)
        return [
            RequestLimit(
                limit=charge.limit,
                key=charge.key,
                breached=self.refuses and (self.decision.blocked or index == self.saying),
                remaining=standing.remaining,
                reset_at=math.ceil(self.decided_at + standing.reset_after),
                shared=charge.rule.shared,
                decision=self.decision,
            )
            for index, (charge, standing) in enumerate(zip(self.charges, standings, strict=True))
        ]

    def headers(self, *, x_ratelimit: bool) -> list[tuple[str, str]]:
        """Return the headers that tell it."""
        answers = self.told_by.fully if x_ratelimit else self.told_by.briefly
        return answers.answer(self.decision).headers


class RateLimitExceeded(TooManyRequests):
    """The 429 of a refused request; `limit` is the RequestLimit that refused it."""

    def __init__(
        self,
        limit: RequestLimit,
        response: Response | None = None,
        description: str | None = None,
    ) -> None:
        """Refuse for `limit`; the description is its notation, or "blocked", unless one is given."""
        what = "blocked" if limit.decision.blocked else str(limit.limit)
        super().__init__(description=description or what, response=response)
        self.limit = limit


class NotDecided(ServiceUnavailable):
    """The 503 of a request that is refused because the store failed; `limit` is the RequestLimit."""

    def __init__(self, limit: RequestLimit) -> None:
        """Refuse for `limit`, of which nobody could say whether it admits."""
        super().__init__(description="the limits of this request cannot be checked now")
        self.limit = limit


def strictest(answers: Sequence[Answer]) -> Answer | None:
    """Return the answer that says most: the refusal, else the one with the fewest left."""
    return min(answers, key=lambda answer: (not answer.refuses, answer.decision.remaining), default=None)


def headers(answers: Sequence[Answer], *, x_ratelimit: bool) -> dict[str, str]:
    """Return the headers that tell the answers: RateLimit all of them, the others the strictest."""
    said = strictest(answers)
    if said is None:
        return {}
    told: dict[str, list[str]] = {}
    for answer in answers:
        for name, value in answer.headers(x_ratelimit=x_ratelimit and answer is said):
            if answer is said or name.startswith("RateLimit"):
                told.setdefault(name, []).append(value)
    return {name: ", ".join(values) for name, values in told.items()}
