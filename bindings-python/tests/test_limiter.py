"""The operations of a limiter, on every store."""

import enum
import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import SupportsIndex

import pytest

from mirab import (
    Closed,
    Decision,
    InvalidArgument,
    InvalidLimit,
    InvalidUri,
    Limit,
    Limiter,
    ManualClock,
    Refused,
    Store,
)


class Units(enum.IntEnum):
    TWO = 2


class Number:
    """An integer that is no int, as numpy's are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def test_acquire_takes_what_is_there(store_uri: str) -> None:
    limiter = Limiter("5/minute", store_uri, clock=ManualClock())
    first = limiter.acquire("k")
    assert (first.allowed, first.limit, first.used, first.remaining) == (True, 5, 1, 4)
    assert limiter.acquire("k", 4).remaining == 0
    refusal = limiter.acquire("k", cost=1)
    assert (refusal.allowed, refusal.used, refusal.remaining) == (False, 5, 0)
    assert refusal.retry_after == 12.0
    assert limiter.acquire("other").allowed


def test_allow_answers_a_bool(store_uri: str) -> None:
    limiter = Limiter("2/minute", store_uri, clock=ManualClock())
    assert [limiter.allow("k") for _ in range(3)] == [True, True, False]
    assert limiter.allow("k", 0) is True
    assert limiter.allow(b"k", cost=1) is False


def test_peek_takes_nothing(store_uri: str) -> None:
    limiter = Limiter("2/minute", store_uri, clock=ManualClock())
    for _ in range(3):
        peek = limiter.peek("k")
        assert (peek.allowed, peek.remaining) == (True, 2)
    assert limiter.acquire("k", 2)
    assert not limiter.peek("k")
    assert limiter.peek("k").retry_after == 30.0
    assert limiter.peek("k", 0)


def test_reset_forgets_one_key(store_uri: str) -> None:
    limiter = Limiter("1/minute", store_uri, clock=ManualClock())
    assert limiter.allow("a")
    assert limiter.allow("b")
    limiter.reset("a")
    limiter.reset("never seen")
    assert limiter.allow("a")
    assert not limiter.allow("b")


def test_close_ends_every_operation(store_uri: str) -> None:
    limiter = Limiter("5/minute", store_uri)
    limiter.close()
    limiter.close()
    for operation in (limiter.acquire, limiter.allow, limiter.peek, limiter.reset):
        with pytest.raises(Closed):
            operation("k")


def test_a_context_manager_closes(store_uri: str) -> None:
    with Limiter("5/minute", store_uri) as limiter:
        assert limiter.allow("k")
    with pytest.raises(Closed):
        limiter.allow("k")


def test_an_exception_passes_through_the_context_manager() -> None:
    with pytest.raises(KeyError), Limiter("5/minute"):
        raise KeyError


DECIDING = [Limiter.acquire, Limiter.allow, Limiter.peek]


@pytest.mark.parametrize("method", DECIDING)
def test_arguments_by_position_and_by_name(method: Callable[..., object]) -> None:
    limiter = Limiter("5/minute")
    assert list(inspect.signature(method).parameters) == ["self", "key", "cost"]
    assert inspect.signature(limiter.allow).parameters["cost"].default == 1
    by_name = getattr(limiter, method.__name__)
    for call in (
        lambda: method(limiter, "k"),
        lambda: method(limiter, "k", 0),
        lambda: by_name("k", cost=0),
        lambda: by_name(key="k"),
        lambda: by_name(cost=0, key="k"),
        lambda: by_name(*["k"], cost=0),
    ):
        assert call()
    assert limiter.stats().allowed in ({6} if method is not Limiter.peek else {0})


@pytest.mark.parametrize("method", DECIDING)
@pytest.mark.parametrize(
    ("args", "names", "wrong"),
    [
        ((), {}, r"missing 1 required positional argument: 'key'"),
        ((), {"cost": 1}, r"missing 1 required positional argument: 'key'"),
        (("k", 1, 1), {}, r"takes from 1 to 2 positional arguments but 3 were given"),
        (("k",), {"key": "k"}, r"got multiple values for argument 'key'"),
        (("k", 1), {"cost": 1}, r"got multiple values for argument 'cost'"),
        (("k",), {"costs": 1}, r"got an unexpected keyword argument 'costs'"),
        (("k",), {"": 1}, r"got an unexpected keyword argument ''"),
    ],
)
def test_wrong_calls(
    method: Callable[..., object], args: tuple[object, ...], names: dict[str, object], wrong: str
) -> None:
    limiter = Limiter("5/minute")
    with pytest.raises(TypeError, match=rf"^Limiter\.{method.__name__}\(\) {wrong}$"):
        method(limiter, *args, **names)
    for other in (None, 5, limiter.peek("k"), object):
        with pytest.raises(TypeError):
            method(other, "k")
    with pytest.raises(TypeError):
        method()
    assert limiter.stats().allowed == 0


def test_a_subclass_adds_to_the_methods() -> None:
    class Doubled(Limiter):
        def acquire(self, key: str | bytes, cost: SupportsIndex = 1) -> Decision:
            return super().acquire(key, 2 * cost.__index__())

    limiter = Doubled("5/minute")
    assert [limiter.acquire("k").used, limiter.acquire("k", 1).used] == [2, 4]
    assert limiter.refund(limiter.acquire("k", 0)) == 0
    with pytest.raises(Refused), limiter.hold("k"):
        pytest.fail("it was entered")


@pytest.mark.parametrize("cost", [1, 2, Units.TWO, Number(3), 0])
def test_good_costs(cost: int) -> None:
    limiter = Limiter("5/minute")
    assert limiter.acquire("k", cost).used == int(cost.__index__())


@pytest.mark.parametrize(
    "cost",
    [-1, 1.0, 1.5, float("nan"), float("inf"), True, False, None, "1", b"1", Fraction(1), 2**53 + 1, 2**64],
)
def test_bad_costs_are_named(store_uri: str, cost: int) -> None:
    limiter = Limiter("5/minute", store_uri)
    for operation in (limiter.acquire, limiter.allow, limiter.peek):
        with pytest.raises(InvalidArgument, match="cost") as caught:
            operation("k", cost)
        assert str(cost) in str(caught.value)
    assert limiter.peek("k").remaining == 5


def test_a_cost_above_the_capacity_is_never(store_uri: str) -> None:
    limiter = Limiter("5/minute", store_uri)
    for cost in (6, 2**53):
        decision = limiter.acquire("k", cost)
        assert (decision.allowed, decision.never, decision.retry_after) == (False, True, None)
    assert limiter.acquire("k", 5)


def test_a_limit_says_the_same_in_every_form() -> None:
    forms = ("5/minute", Limit.parse("5 per 60 seconds"), ["5/minute"], (Limit.token_bucket(5, 60),))
    store = Store("memory:")
    for form in forms:
        limiter = Limiter(form, store)
        assert limiter.limits == (Limit.parse("5/minute"),)
        assert limiter.allow("k")
    assert Limiter("5/minute", store).peek("k").used == len(forms)


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ("", InvalidLimit),
        ("0/second", InvalidLimit),
        ("5", InvalidLimit),
        ("5/m", InvalidLimit),
        ("-5/minute", InvalidLimit),
        ("5/fortnight", InvalidLimit),
        ("nonsense: 5/minute", InvalidLimit),
        (5, InvalidLimit),
        (None, InvalidLimit),
        ([], InvalidLimit),
        ([5], InvalidLimit),
        ("5/minute; 5/minute", InvalidLimit),
        (["5/minute", Limit.token_bucket(5, 60)], InvalidLimit),
        ([f"{count}/minute" for count in range(1, 18)], InvalidLimit),
    ],
)
def test_bad_limits(limits: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Limiter(limits)


def test_several_limits_are_one_decision(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter(["3/minute", "fixed_window: 5/hour; day=100/day"], store_uri, clock=clock)
    assert [str(limit) for limit in limiter.limits] == ["3/minute", "fixed_window: 5/hour", "day=100/day"]
    for _ in range(3):
        assert limiter.allow("k")
    refusal = limiter.acquire("k")
    assert (refusal.allowed, refusal.limit_name, refusal.retry_after) == (False, "3/minute", 20.0)
    assert [(standing.limit_name, standing.used) for standing in refusal.standings] == [
        ("3/minute", 3),
        ("fixed_window: 5/hour", 3),
        ("day", 3),
    ]
    clock.advance(60)
    assert limiter.acquire("k", 2)
    refusal = limiter.acquire("k")
    assert (refusal.limit_name, refusal.remaining) == ("fixed_window: 5/hour", 0)
    assert refusal.standings[0].used == 2


def test_a_lone_surrogate_in_a_limit_is_an_error() -> None:
    for make in (Limiter, Limit.parse):
        with pytest.raises(InvalidLimit, match="udc80"):
            make("5/minute\udc80")
    with pytest.raises(InvalidUri, match="surrogate"):
        Limiter("5/minute", "memory:\udc80")


def test_a_list_within_a_list_is_an_error() -> None:
    endless: list[object] = []
    endless.append(endless)
    for limits in (endless, [["5/minute"]]):
        with pytest.raises(InvalidLimit):
            Limiter(limits)  # type: ignore[arg-type]


def test_options_are_checked() -> None:
    with pytest.raises(InvalidArgument, match="store 5"):
        Limiter("5/minute", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="store None"):
        Limiter("5/minute", None)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="clock 5"):
        Limiter("5/minute", clock=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="sometimes"):
        Limiter("5/minute", on_store_failure="sometimes")
    with pytest.raises(TypeError, match="colour"):
        Limiter("5/minute", colour="red")  # type: ignore[call-arg]


def test_the_state_outlives_the_limiter_on_a_shared_store(store_uri: str) -> None:
    clock = ManualClock()
    assert Limiter("1/minute", store_uri, clock=clock).allow("k")
    assert not Limiter("1/minute", store_uri, clock=clock).allow("k")


def test_plain_memory_is_the_limiters_own() -> None:
    assert Limiter("1/minute").allow("k")
    assert Limiter("1/minute").allow("k")


def test_different_limits_never_share(store_uri: str) -> None:
    assert Limiter("1/minute", store_uri).allow("k")
    assert Limiter("100/minute", store_uri).peek("k").used == 0
    assert Limiter("fixed_window: 1/minute", store_uri).peek("k").used == 0


def test_repr_hides_the_password() -> None:
    secret = "redis://user:s3cret@127.0.0.1:1"
    for shown in (repr(Limiter("5/minute", secret)), repr(Store(secret))):
        assert "s3cret" not in shown
    assert "5/minute" in repr(Limiter("5/minute"))
