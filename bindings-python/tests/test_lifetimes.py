"""What a decision refers to lives as long as it does, and no longer."""

import gc
import os
import sys
import weakref
from collections.abc import Callable

import pytest

from children import in_child
from mirab import Decision, InvalidArgument, Limiter, ManualClock, Standing

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

POLICY = "5/minute; sliding_log: 9/hour; concurrency: 4 for 30 seconds"


def acquired(limiter: Limiter, key: str | bytes, cost: int) -> Decision:
    return limiter.acquire(key, cost)


def acquired_with_others(limiter: Limiter, key: str | bytes, cost: int) -> Decision:
    return limiter.acquire_many(["other", (key, cost), "another"])[1]


def waited(limiter: Limiter, key: str | bytes, cost: int) -> Decision:
    return limiter.wait(key, cost, timeout=1)


FIELDS = [name for name in dir(Decision) if not name.startswith("_")]
MAKERS = pytest.mark.parametrize("make", [acquired, acquired_with_others, waited])
Maker = Callable[[Limiter, str | bytes, int], Decision]


@MAKERS
def test_a_decision_outlives_who_made_it(store_uri: str, make: Maker) -> None:
    limiter = Limiter(POLICY, store_uri, clock=ManualClock())
    decision = make(limiter, f"user:{id(limiter)}", 3)
    limiter.close()
    del limiter
    gc.collect()
    assert (decision.limit, decision.used, decision.remaining) == (4, 3, 1)
    assert decision.limit_name == "concurrency: 4 for 30 seconds"
    standings = decision.standings
    del decision
    gc.collect()
    assert [standing.limit_name for standing in standings] == POLICY.split("; ")
    assert [(standing.used, standing.remaining) for standing in standings] == [(3, 2), (3, 6), (3, 1)]
    assert [standing.reset_after for standing in standings] == [36.0, 3600.0, 30.0]


@MAKERS
@pytest.mark.parametrize("key", ["k", "ключ", b"\x00\xff", "x" * 9_999])
def test_a_decision_knows_its_key(store_uri: str, make: Maker, key: str | bytes) -> None:
    limiter = Limiter(POLICY, store_uri, clock=ManualClock())
    decision = make(limiter, key, 3)
    limiter.commit(decision, 2)
    assert [standing.used for standing in limiter.peek(key).standings] == [2, 2, 3]
    assert limiter.release(decision) == 1
    assert limiter.refund(make(limiter, key, 2)) == 2
    assert [standing.used for standing in limiter.peek(key).standings] == [2, 2, 0]


@MAKERS
def test_a_decision_of_another_limiter_is_an_error_and_stays_its_owners(store_uri: str, make: Maker) -> None:
    clock = ManualClock()
    limiter = Limiter(POLICY, store_uri, clock=clock)
    decision = make(limiter, "k", 3)
    for limits in ("5/minute", "unlimited", [POLICY, "100/day"]):
        other = Limiter(limits, store_uri, clock=clock)
        with pytest.raises(InvalidArgument, match="another limiter"):
            other.refund(decision)
        with pytest.raises(InvalidArgument, match="another limiter"):
            other.commit(decision, 1)
    same = Limiter(POLICY, store_uri, clock=clock)
    assert same.refund(decision) == 3
    assert limiter.refund(decision) == 0


def test_a_child_settles_what_its_parent_took(store_uri: str) -> None:
    limiter = Limiter("5/day", store_uri)
    decision = limiter.acquire("k", 3)

    def child() -> None:
        assert decision.used == 3
        assert [limiter.refund(decision) for _ in range(2)] == [3, 0]
        assert limiter.peek("k").used == 0

    in_child(child)
    assert limiter.peek("k").used == (3 if store_uri.startswith("memory:") else 0)


class App:
    """Has a limiter whose clock is a method of its own, and what was decided last."""

    def __init__(self) -> None:
        self.limiter = Limiter(POLICY, clock=self.now)
        self.last = self.limiter.acquire("k")
        self.standings = self.last.standings

    def now(self) -> float:
        return float(os.times().elapsed)


def test_what_refers_to_itself_is_collected() -> None:
    app = App()
    assert app.last.used == app.standings[0].used == 1
    gone = weakref.ref(app)
    del app
    gc.collect()
    assert gone() is None


def test_a_decision_keeps_neither_limiter_nor_store() -> None:
    clock = weakref.WeakSet[Callable[[], float]]()

    def limiter() -> Limiter:
        def now() -> float:
            return 1e9

        clock.add(now)
        return Limiter(POLICY, clock=now)

    decision = limiter().acquire("k")
    gc.collect()
    assert not clock
    assert decision.used == 1


@MAKERS
def test_nothing_is_left_behind(store_uri: str, make: Maker) -> None:
    limiter, key = Limiter(POLICY, store_uri, clock=ManualClock()), f"user:{store_uri}"

    def use() -> None:
        decision = make(limiter, key, 1)
        assert all(getattr(decision, name) is not decision for name in FIELDS)
        assert {repr(standing) for standing in decision.standings}
        limiter.refund(decision)

    def references() -> list[int]:
        gc.collect()
        return [sys.getrefcount(thing) for thing in (limiter, key, Decision, Standing)]

    use()
    before = references()
    for _ in range(50):
        use()
    assert references() == before
