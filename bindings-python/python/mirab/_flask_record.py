"""What is decided for one request, and what it is charged."""

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flask import Response

from mirab import _flask_check as check
from mirab._flask_answer import Answer, Charge, NotDecided, RateLimitExceeded
from mirab._flask_hold import Held, give_back, hold
from mirab._flask_rule import DeductWhen, KeyFunc, OnBreach, Rule, is_queue
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
    held: Held
    """What it holds until its response is there, or done."""
    keys: dict[KeyFunc, str | bytes] = field(default_factory=dict)
    done: set[Rule] = field(default_factory=set)
    charged: set[tuple[Limit, str | bytes]] = field(default_factory=set)
    answers: list[Answer] = field(default_factory=list)
    """What has counted it, and the refusal."""
    response: Response | None = None

    def check(self, rules: Iterable[tuple[Rule, str | None]]) -> None:
        """Charge the rules, each in its scope; raise when one refuses, else wait for the request's turn.

        When one refuses or cannot be decided, what the others of this call took is given back.
        """
        before = set(self.done), set(self.charged)
        answers: list[Answer] = []
        try:
            for charges, deduct_when in self._decided_together(rules):
                answer = self._decide(charges, deduct_when)
                if answer:
                    answers.append(answer)
                    if answer.refuses:
                        break
        except BaseException:
            self.done, self.charged = before
            _give_back(answers)
            raise
        if answers and answers[-1].refuses:
            self.done, self.charged = before
            _give_back(answers)
            self.answers.append(answers[-1])
            if answers[-1].decision.degraded and self.settings.on_store_failure == "closed":
                raise NotDecided(answers[-1].limits()[answers[-1].saying])
            raise _exceeded(answers[-1], self.settings.on_breach)
        self._count(answers)
        hold(max((answer.decision.delay for answer in answers), default=0), self.settings.clock)

    def settle(self, response: Response) -> None:
        """Give back what is not to be counted of a request with this response; each limit is asked once."""
        self.response = response
        while self.held.pending:
            answer = self.held.pending.pop(0)
            if answer.deduct_when and not answer.deduct_when(response):
                give_back(answer.limiter, answer.decision)
                self.answers.remove(answer)

    def _decided_together(
        self, rules: Iterable[tuple[Rule, str | None]]
    ) -> list[tuple[list[Charge], DeductWhen | None]]:
        """Put together what has one key, one cost, and one fate when the response is there.

        Queues come last: they may not be able to take back what another refuses.
        """
        groups: dict[tuple[str | bytes, int, DeductWhen | None], list[Charge]] = {}
        for rule, scope in rules:
            self.done.add(rule)
            if rule.applies():
                for charge in self._charges(rule, rule.scope_of(scope)):
                    # A place is given back when the response is done: there is nothing to deduct.
                    deduct_when = None if charge.limit.is_concurrency else rule.deduct_when
                    groups.setdefault((charge.key, charge.cost, deduct_when), []).append(charge)
        together = [
            (charges[start : start + _MOST_TOGETHER], deduct_when)
            for (_, _, deduct_when), charges in groups.items()
            for start in range(0, len(charges), _MOST_TOGETHER)
        ]
        return sorted(together, key=lambda them: any(is_queue(charge.limit) for charge in them[0]))

    def _charges(self, rule: Rule, scope: str) -> Iterable[Charge]:
        """Yield the rule's limits; one that two rules name on one key is charged once."""
        key = self._key(rule.key_func or self.settings.key_func)
        cost = rule.units()
        for written in rule.limits(self.settings.strategy):
            limit = self.settings.scoped(written, scope)
            if (limit, key) not in self.charged:
                self.charged.add((limit, key))
                yield Charge(rule, limit, key, cost)

    def _decide(self, charges: Sequence[Charge], deduct_when: DeductWhen | None) -> Answer | None:
        """Decide limits of one key and cost together. This is the one place where anything is charged."""
        if not self.held.ends and any(charge.limit.is_concurrency for charge in charges):
            raise Unsupported(
                "a concurrency limit for a request that did not come through app.wsgi_app: it would not be "
                "seen when the response is done"
            )
        limiter = self.settings.limiter(tuple(charge.limit for charge in charges))
        try:
            decision = limiter.acquire(charges[0].key, charges[0].cost)
        except STORE_FAILURES as error:
            if not self.settings.swallow_errors:
                raise
            self.settings.store_failed(error)
            return None
        self.settings.store_answered()
        settings = self.settings
        return Answer(
            charges, limiter, decision, settings.now(), deduct_when, settings.max_hold, settings.told_by
        )

    def _count(self, answers: Sequence[Answer]) -> None:
        """Keep what a request that may pass has taken."""
        self.answers += answers
        for answer in answers:
            if any(charge.limit.is_concurrency for charge in answer.charges):
                self.held.add(answer.limiter, answer.decision)
        self.held.pending += [answer for answer in answers if answer.deduct_when]
        if self.response is not None:  # a function that is called while the response streams
            self.settle(self.response)

    def _key(self, key_func: KeyFunc) -> str | bytes:
        """Ask each key function once a request."""
        key = self.keys.get(key_func)
        if key is None:
            key = key_func()
            if key is None or key in ("", b""):
                self.settings.without_key(key, _ANONYMOUS)
                key = _ANONYMOUS
            elif inspect.isawaitable(key):  # each has another text: nobody would be limited
                raise check.wrong(f"the key that {key_func!r} returned,", key, "str or bytes")
            elif not isinstance(key, (str, bytes)):
                key = str(key)
            self.keys[key_func] = key
        return key


def _give_back(answers: Sequence[Answer]) -> None:
    """Undo the decisions of a request that is refused, the last first: so a queue can be left."""
    for answer in reversed(answers):
        if answer.decision:
            give_back(answer.limiter, answer.decision)


def _exceeded(answer: Answer, on_breach: OnBreach | None) -> RateLimitExceeded:
    """Tell the callbacks, the extension's first; the last response that one returns is the answer."""
    rule, refusal = answer.charges[answer.saying].rule, answer.limits()[answer.saying]
    response = None
    for callback in (on_breach, rule.on_breach):
        made = callback(refusal) if callback else None
        if isinstance(made, Response):
            response = made
    return RateLimitExceeded(refusal, response, rule.message())
