"""What a decision tells, and that nobody admits a refused request by habit."""

import copy
import pickle
from typing import Any

import pytest

from mirab import Decision, Limiter, ManualClock, Refused, Standing


def refused() -> Decision:
    limiter = Limiter("login=1/minute", clock=ManualClock())
    limiter.acquire("k")
    return limiter.acquire("k")


def test_a_decision_is_true_exactly_when_it_admits() -> None:
    limiter = Limiter("3/minute")
    for cost in (1, 0, 3, 2, 4, 1, 9):
        decision = limiter.acquire("k", cost)
        assert bool(decision) is decision.allowed
        assert (not decision) is not decision.allowed


def test_fields_of_a_refusal() -> None:
    decision = refused()
    assert decision.allowed is False
    assert decision.never is False
    assert decision.degraded is False
    assert decision.limit_name == "login"
    assert decision.retry_after == 60.0
    assert decision.reset_after == 60.0
    assert decision.delay == 0.0
    assert isinstance(decision.retry_after, float)


def test_fields_of_an_admission() -> None:
    decision = Limiter("4/minute", clock=ManualClock()).acquire("k", 3)
    assert decision.allowed is True
    assert decision.retry_after is None
    assert decision.reset_after == 45.0
    assert (decision.limit, decision.used, decision.remaining) == (4, 3, 1)
    assert decision.limit_name == "4/minute"


def test_standings() -> None:
    decision = Limiter("4/minute", clock=ManualClock()).acquire("k", 3)
    (standing,) = decision.standings
    assert standing.limit_name == "4/minute"
    assert (standing.limit, standing.used, standing.remaining) == (4, 3, 1)
    assert (standing.reset_after, standing.next_after) == (45.0, 15.0)
    assert "4/minute" in repr(standing)
    assert Limiter("4/minute").peek("k").standings[0].next_after is None


def test_a_decision_is_frozen() -> None:
    decision = refused()
    with pytest.raises(AttributeError):
        decision.allowed = True  # type: ignore[misc]
    with pytest.raises(TypeError):
        Decision()


@pytest.mark.parametrize("made", [refused(), refused().standings[0]], ids=repr)
def test_the_classes_are_plain_values(made: Decision | Standing) -> None:
    kind: Any = type(made)
    assert kind in (Decision, Standing)
    assert (kind.__module__, kind.__mro__) == ("mirab", (kind, object))
    fields = [name for name in dir(kind) if not name.startswith("_")]
    for name in fields:
        assert getattr(kind, name).__doc__
        with pytest.raises(AttributeError):
            setattr(made, name, getattr(made, name))
        with pytest.raises(AttributeError):
            delattr(made, name)
    with pytest.raises(AttributeError):
        made.colour = "red"  # type: ignore[union-attr]
    for copied in (copy.copy, pickle.dumps):
        with pytest.raises(TypeError, match="pickle"):
            copied(made)
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(TypeError):
        type("Sub", (kind,), {})
    assert bool(made) is (kind is Standing)
    assert (made == made, made == refused(), len({made, made})) == (True, False, 1)  # noqa: PLR0124


def test_repr() -> None:
    assert repr(refused()) == (
        'Decision(allowed=False, limit=1, used=1, remaining=0, retry_after=60.0, limit_name="login")'
    )
    assert "never=True" in repr(Limiter("deny").acquire("k"))


def test_refused_carries_the_decision() -> None:
    decision = refused()
    error = Refused(decision)
    assert error.decision is decision
    assert str(error) == "refused by login: retry after 60.0 seconds"
    assert "no wait" in str(Refused(Limiter("deny").acquire("k")))
