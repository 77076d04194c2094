"""What a Flask client is told about the limits of a request."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import Response
from werkzeug.exceptions import TooManyRequests

from mirab._mirab import Decision, Limit, http_headers

if TYPE_CHECKING:
    from mirab._flask_rule import Rule


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
    """Whether this limit refused the request."""
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


@dataclass(frozen=True)
class Answer:
    """One decision over the charges of one key and cost, and when it was made."""

    charges: Sequence[Charge]
    decision: Decision
    decided_at: float

    def limits(self) -> list[RequestLimit]:
        """Return where each of the charged limits stood."""
        refusing = None if self.decision.allowed else self.decision.limit_index
        return [
            RequestLimit(
                limit=charge.limit,
                key=charge.key,
                breached=index == refusing,
                remaining=standing.remaining,
                reset_at=math.ceil(self.decided_at + standing.reset_after),
                shared=charge.rule.shared,
                decision=self.decision,
            )
            for index, (charge, standing) in enumerate(
                zip(self.charges, self.decision.standings, strict=True)
            )
        ]


class RateLimitExceeded(TooManyRequests):
    """The 429 of a refused request; `limit` is the RequestLimit that refused it."""

    def __init__(
        self,
        limit: RequestLimit,
        response: Response | None = None,
        description: str | None = None,
    ) -> None:
        """Refuse for `limit`; the description is the limit's notation unless one is given."""
        super().__init__(description=description or str(limit.limit), response=response)
        self.limit = limit


def strictest(answers: Sequence[Answer]) -> Answer | None:
    """Return the answer that says most: the refusal, else the one with the fewest left."""
    return min(answers, key=lambda answer: (answer.decision.allowed, answer.decision.remaining), default=None)


def headers(answers: Sequence[Answer], *, x_ratelimit: bool) -> dict[str, str]:
    """Return the headers that tell the answers; those of several decisions are joined as lists."""
    said = strictest(answers)
    if said is None:
        return {}
    told: dict[str, list[str]] = {}
    for answer in answers:
        for name, value in http_headers(answer.decision, ["draft-8"]):
            told.setdefault(name, []).append(value)
    joined = {name: ", ".join(values) for name, values in told.items()}
    if x_ratelimit:
        joined.update(http_headers(said.decision, ["x-ratelimit-epoch"], unix_now=said.decided_at))
    return joined
