"""What Flask-Limiter's users write, as limits of mirab."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from flask import Response, request

from mirab import _flask_check as check
from mirab._flask_answer import RequestLimit
from mirab._mirab import InvalidLimit, Limit, Unsupported

LimitValue: TypeAlias = str | Limit | Callable[[], str | Limit]
KeyFunc: TypeAlias = Callable[[], str | bytes | None]
OnBreach: TypeAlias = Callable[[RequestLimit], Response | None]
DeductWhen: TypeAlias = Callable[[Response], bool]

FIXED_WINDOW = "fixed-window"
STRATEGIES = {
    FIXED_WINDOW: "fixed_window",
    "moving-window": "sliding_log",
    "sliding-window-counter": "sliding_window",
    "token-bucket": "token_bucket",
}
"""What a limit is that names no algorithm: Flask-Limiter's names, and mirab's own token bucket."""

_NAMED = re.compile(r"\s*(?:(?P<name>[A-Za-z0-9._-]+)\s*=\s*)?(?P<limit>.*)", re.DOTALL)
_ZERO = re.compile(r"0+\s*(/|per\b)")
_ANCHORED = re.compile(r"\b(from|in)\b", re.IGNORECASE)
_AS_WRITTEN = re.compile(r":|\bburst\b|^(deny|unlimited)\s*$", re.IGNORECASE)


_FUNCTIONS = {
    "key_func": "a function that returns the key",
    "exempt_when": "a function that tells whether the request passes",
    "on_breach": "a function of the refusing limit",
    "deduct_when": "a function of the response",
}
"""Options that are functions, and which."""


@dataclass(frozen=True, eq=False)
class Rule:
    """One call of `limit` or `shared_limit`, or one of the app's own limits."""

    value: LimitValue
    key_func: KeyFunc | None = None
    per_method: bool = False
    methods: frozenset[str] | None = None
    error_message: str | Callable[[], str] | None = None
    exempt_when: Callable[[], bool] | None = None
    override_defaults: bool = True
    on_breach: OnBreach | None = None
    cost: int | Callable[[], int] = 1
    scope: str | Callable[[str], str] | None = None
    shared: bool = False
    deduct_when: DeductWhen | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be right where it is written, not at the first request."""
        if callable(self.value):
            check.function("limit_value", self.value)
        else:
            self.limits(FIXED_WINDOW)
        for name, right in _FUNCTIONS.items():
            if getattr(self, name) is not None:
                check.function(name, getattr(self, name), right)
        for name in ("per_method", "override_defaults"):
            check.flag(name, getattr(self, name))
        if callable(self.error_message):
            check.function("error_message", self.error_message)
        else:
            check.message("error_message", self.error_message)
        if self.shared or self.scope is not None:
            check.text_or_function("scope", self.scope)
        if callable(self.cost):
            check.function("cost", self.cost)
        else:
            check.units("cost", self.cost)

    def applies(self) -> bool:
        """Whether it counts this request. OPTIONS counts only for a rule that names it."""
        if self.methods is None:
            if request.method == "OPTIONS":
                return False
        elif request.method not in self.methods:
            return False
        return self.exempt_when is None or not self.exempt_when()

    def limits(self, strategy: str) -> tuple[Limit, ...]:
        """Its limits, in the order in which they are written."""
        value = self.value() if callable(self.value) else self.value
        if not isinstance(value, (str, Limit)):
            told = f", which {self.value!r} returned" if callable(self.value) else ""
            right = 'text such as "5/minute" or a Limit' + ("" if told else ", or a callable")
            raise InvalidLimit(f"limit {value!r}{told}: it must be {right}")
        limits = limits_of(value, strategy)
        if self.deduct_when:
            for limit in limits:
                if is_queue(limit):
                    raise Unsupported(
                        f"deduct_when for {str(limit)!r}: a request that has left the queue is not given back"
                    )
        return limits

    def units(self) -> int:
        """Return what a request costs."""
        if callable(self.cost):
            return check.units(f"the cost that {self.cost!r} returned,", self.cost())
        return self.cost

    def message(self) -> str | None:
        """Return what a refusal says instead of the limit."""
        if callable(self.error_message):
            made = self.error_message()
            check.message(f"the text that {self.error_message!r} returned,", made)
            return made
        return self.error_message

    def scope_of(self, endpoint: str | None) -> str:
        """Whose buckets it uses: the endpoint's, those of a shared scope, or the app's (empty)."""
        given = self.scope
        if callable(given):
            made = given(request.endpoint or "")
            given = made and check.text(f"the scope that {given!r} returned,", made)
        parts = ["shared", given or ""] if self.shared else [part for part in (endpoint, given) if part]
        if self.per_method:
            parts.append(request.method)
        return ":".join(parts)


def is_queue(limit: Limit) -> bool:
    """Whether it is a leaky bucket, which takes back only who has not had his turn."""
    return "leaky_bucket:" in str(limit)


def check_strategy(name: str, strategy: str) -> str:
    """Return the strategy, or say why it cannot be had."""
    if strategy not in (*STRATEGIES,):
        raise check.wrong(name, strategy, "one of " + ", ".join(f'"{each}"' for each in STRATEGIES))
    return strategy


@lru_cache(maxsize=1024)
def limits_of(value: str | Limit, strategy: str) -> tuple[Limit, ...]:
    """Read a limit value; text may hold several, as in "5/minute; 100/hour"."""
    if isinstance(value, Limit):
        return (value,)
    return tuple(_limit_of(text, strategy) for text in re.split("[;,|]", value))


def _limit_of(text: str, strategy: str) -> Limit:
    """Read one limit: without an algorithm of its own it is the strategy's."""
    match = _NAMED.fullmatch(text)
    name, rest = (match["name"], match["limit"]) if match else (None, text)
    if _ZERO.match(rest):  # Flask-Limiter's way to say that nothing may pass
        return Limit.deny() if name is None else Limit.deny().with_name(name)
    if _AS_WRITTEN.search(rest):
        return Limit.parse(text)
    if _ANCHORED.search(rest):
        limit = Limit.parse(f"fixed_window: {rest}")
    else:
        anchor = " from first" if strategy == FIXED_WINDOW else ""
        limit = Limit.parse(f"{STRATEGIES[strategy]}: {rest}{anchor}")
    return limit if name is None else limit.with_name(name)
