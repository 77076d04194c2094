"""What is decided for one request, and what it is charged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flask import Response

from mirab._flask_answer import Answer, Charge, RateLimitExceeded
from mirab._flask_hold import Places, hold
from mirab._flask_rule import KeyFunc, OnBreach, Rule
from mirab._flask_settings import STORE_FAILURES, Settings
from mirab._mirab import Limit, Unsupported

_ANONYMOUS = "anonymous"
_MOST_TOGETHER = 16  # limits of one policy


@dataclass
class Record:
    """What has been done for one request."""

    settings: Settings
    skip: bool
    """Whether it passes without a limit."""
    places: Places | None
    """What it holds until its response is done; None when that would not be seen."""
    keys: dict[KeyFunc, str | bytes] = field(default_factory=dict)
    done: set[Rule] = field(default_factory=set)
    charged: set[tuple[Limit, str | bytes]] = field(default_factory=set)
    answers: list[Answer] = field(default_factory=list)

    def check(self, rules: Iterable[tuple[Rule, str | None]]) -> None:
        """Charge the rules, each in its scope; raise when one refuses, else wait for the request's turn."""
        groups: dict[tuple[str | bytes, int], list[Charge]] = {}
        for rule, scope in rules:
            self.done.add(rule)
            if rule.applies():
                for charge in self._charges(rule, rule.scope_of(scope)):
                    groups.setdefault((charge.key, charge.cost), []).append(charge)
        before = len(self.answers)
        for charges in groups.values():
            for start in range(0, len(charges), _MOST_TOGETHER):
                self._decide(charges[start : start + _MOST_TOGETHER])
        delays = [answer.decision.delay for answer in self.answers[before:]]
        hold(max(delays, default=0), self.settings.clock)

    def _charges(self, rule: Rule, scope: str) -> Iterable[Charge]:
        """Yield the rule's limits; one that two rules name on one key is charged once."""
        key = self._key(rule.key_func or self.settings.key_func)
        cost = rule.cost() if callable(rule.cost) else rule.cost
        for written in rule.limits(self.settings.strategy):
            limit = self.settings.scoped(written, scope)
            if (limit, key) not in self.charged:
                self.charged.add((limit, key))
                yield Charge(rule, limit, key, cost)

    def _decide(self, charges: Sequence[Charge]) -> None:
        """Decide limits of one key and cost together. This is the one place where anything is charged."""
        limiter, takes_places = self.settings.policy(tuple(charge.limit for charge in charges))
        if takes_places and self.places is None:
            raise Unsupported(
                "a concurrency limit for a request that did not come through app.wsgi_app: it would not be "
                "seen when the response is done"
            )
        try:
            decision = limiter.acquire(charges[0].key, charges[0].cost)
        except STORE_FAILURES as error:
            if not self.settings.swallow_errors:
                raise
            self.settings.store_failed(error)
            return
        self.settings.store_answered()
        if takes_places and self.places is not None and decision:
            self.places.add(limiter, decision)
        answer = Answer(charges, decision, self.settings.now())
        self.answers.append(answer)
        if not decision:
            raise _exceeded(answer, self.settings.on_breach)

    def _key(self, key_func: KeyFunc) -> str | bytes:
        """Ask each key function once a request."""
        key = self.keys.get(key_func)
        if key is None:
            key = key_func()
            if key is None or key in ("", b""):
                self.settings.without_key(key, _ANONYMOUS)
                key = _ANONYMOUS
            elif not isinstance(key, (str, bytes)):
                key = str(key)
            self.keys[key_func] = key
        return key


def _exceeded(answer: Answer, on_breach: OnBreach | None) -> RateLimitExceeded:
    """Tell the callbacks, the extension's first; the last response that one returns is the answer."""
    index = answer.decision.limit_index
    rule, refusal = answer.charges[index].rule, answer.limits()[index]
    response = None
    for callback in (on_breach, rule.on_breach):
        made = callback(refusal) if callback else None
        if isinstance(made, Response):
            response = made
    message = rule.error_message() if callable(rule.error_message) else rule.error_message
    return RateLimitExceeded(refusal, response, message)
