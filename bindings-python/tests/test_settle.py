"""What was taken is given back, settled at another cost, or blocked: on every store."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest

from mirab import Closed, Decision, InvalidArgument, Limit, Limiter, ManualClock, Store, StoreFull

RATES = [
    "5/minute",
    "fixed_window: 5/minute",
    "fixed_window: 5/minute from first",
    "fixed_window: 5/day in Africa/Cairo",
    "sliding_window: 5/minute",
    "sliding_log: 5/minute",
    "sliding_log: 5/minute buckets 6",
]


def limiter_of(limits: str | list[str | Limit], uri: str) -> tuple[Limiter, ManualClock]:
    clock = ManualClock(1_750_000_020_000_000)
    return Limiter(limits, uri, clock=clock), clock


# refund


@pytest.mark.parametrize("text", [*RATES, "concurrency: 5 for 30s"])
def test_a_refund_gives_back_once(store_uri: str, text: str) -> None:
    limiter, clock = limiter_of(text, store_uri)
    decision = limiter.acquire("k", 3)
    assert limiter.acquire("k").used == 4
    clock.advance(0.000_002)
    assert [limiter.refund(decision) for _ in range(3)] == [3, 0, 0]
    assert limiter.peek("k").used == 1
    assert limiter.stats().refunded == 3


@pytest.mark.parametrize("text", RATES)
def test_never_above_full(store_uri: str, text: str) -> None:
    limiter, clock = limiter_of(text, store_uri)
    decision = limiter.acquire("k", 5)
    clock.advance(timedelta(days=2))
    assert limiter.refund(decision) == 0
    peek = limiter.peek("k")
    assert (peek.used, peek.remaining, peek.reset_after) == (0, 5, 0.0)
    assert limiter.acquire("k", 5)
    assert not limiter.acquire("k")


def test_a_bucket_takes_back_what_has_not_come_back_by_itself(store_uri: str) -> None:
    limiter, clock = limiter_of("5/minute", store_uri)
    decision = limiter.acquire("k", 3)
    clock.advance(12)  # one came back
    limiter.refund(decision)
    peek = limiter.peek("k")
    assert (peek.used, peek.reset_after) == (0, 0.0)


def test_nothing_to_refund(store_uri: str) -> None:
    limiter, _ = limiter_of("2/minute", store_uri)
    asked, free = limiter.peek("k"), limiter.acquire("k", 0)
    limiter.acquire("k", 2)
    refused, never = limiter.acquire("k"), limiter.acquire("k", 3)
    assert [limiter.refund(decision) for decision in (asked, free, refused, never)] == [0] * 4
    assert limiter.peek("k").used == 2
    limiter.reset("k")
    limiter.block("k", 60)
    assert limiter.refund(limiter.acquire("k")) == 0


def test_a_refund_and_a_commit_are_one_settlement(store_uri: str) -> None:
    limiter, _ = limiter_of("9/minute", store_uri)
    first, second = limiter.acquire("k", 3), limiter.acquire("k", 3)
    limiter.refund(first)
    limiter.commit(first, 0)
    limiter.commit(second, 2)
    assert limiter.refund(second) == 0
    limiter.commit(second, 0)
    assert limiter.peek("k").used == 2


def test_only_the_last_leaves_a_queue(store_uri: str) -> None:
    limiter, clock = limiter_of("leaky_bucket: 1/second queue 5", store_uri)
    decisions = [limiter.acquire("k") for _ in range(3)]
    assert [decision.delay for decision in decisions] == [0.0, 1.0, 2.0]
    assert limiter.refund(decisions[1]) == 0
    assert limiter.refund(decisions[2]) == 1
    assert limiter.peek("k").delay == 2.0
    again = limiter.acquire("k")
    clock.advance(2)  # its turn
    assert limiter.refund(again) == 0


def test_several_limits_are_given_back_together(store_uri: str) -> None:
    limiter, _ = limiter_of("5/minute; sliding_log: 9/hour; concurrency: 4 for 30s", store_uri)
    decision = limiter.acquire("k", 3)
    assert [standing.used for standing in limiter.peek("k").standings] == [3, 3, 3]
    assert limiter.refund(decision) == 3
    assert [standing.used for standing in limiter.peek("k").standings] == [0, 0, 0]
    assert limiter.release(decision) == 0


def test_a_refund_after_a_reset(store_uri: str) -> None:
    limiter, _ = limiter_of("sliding_log: 5/minute", store_uri)
    decision = limiter.acquire("k", 3)
    limiter.reset("k")
    limiter.acquire("k", 2)
    assert limiter.refund(decision) == 0
    assert limiter.peek("k").used == 2


def test_the_servers_clock(store_uri: str) -> None:
    limiter = Limiter("5/hour; fixed_window: 5/day", store_uri)
    decision = limiter.acquire(b"\x00\xff{}", 3)
    limiter.commit(limiter.acquire(b"\x00\xff{}", 2), 1)
    assert limiter.refund(decision) == 3
    assert limiter.peek(b"\x00\xff{}").used == 1


# commit


@pytest.mark.parametrize("text", RATES)
@pytest.mark.parametrize(("actual", "used"), [(0, 1), (1, 2), (3, 4), (4, 5), (9, 5), (2**53, 5)])
def test_a_cost_that_is_known_afterwards(store_uri: str, text: str, actual: int, used: int) -> None:
    limiter, _ = limiter_of(text, store_uri)
    assert limiter.acquire("k")
    assert limiter.commit(limiter.acquire("k", 3), actual) is None  # type: ignore[func-returns-value]
    assert limiter.peek("k").used == used
    assert limiter.peek("k").remaining == 5 - used


def test_a_lease_goes_on_after_a_commit(store_uri: str) -> None:
    limiter, _ = limiter_of("9/minute; concurrency: 5 for 30s", store_uri)
    decision = limiter.acquire("k", 3)
    limiter.commit(decision, 1)
    assert [standing.used for standing in limiter.peek("k").standings] == [1, 3]
    assert limiter.release(decision) == 1
    assert [standing.used for standing in limiter.peek("k").standings] == [1, 0]


def test_a_refusal_is_not_committed(store_uri: str) -> None:
    limiter, _ = limiter_of("2/minute", store_uri)
    limiter.acquire("k")
    limiter.commit(limiter.acquire("k", 2), 1)
    assert limiter.peek("k").used == 1


@pytest.mark.parametrize("cost", [-1, 1.0, True, None, "1", 2**53 + 1])
def test_a_bad_actual_cost_settles_nothing(store_uri: str, cost: int) -> None:
    limiter, _ = limiter_of("5/minute", store_uri)
    decision = limiter.acquire("k", 3)
    with pytest.raises(InvalidArgument, match="cost"):
        limiter.commit(decision, cost)
    assert limiter.refund(decision) == 3


def test_twenty_that_reserve_and_settle_pass_no_more_than_the_limit(store_uri: str) -> None:
    limiter = Limiter("fixed_window: 50/day", store_uri)
    start = threading.Barrier(20)

    def request(number: int) -> int:
        start.wait()
        done = 0
        for _ in range(10):
            decision = limiter.acquire("k", 4)
            if decision:
                actual = number % 4
                limiter.commit(decision, actual)
                done += actual
        return done

    with ThreadPoolExecutor(20) as pool:
        done = sum(pool.map(request, range(20)))
    assert done == limiter.peek("k").used <= 50


def test_twenty_that_reserve_at_once(store_uri: str) -> None:
    limiter = Limiter("10/day", store_uri)
    decided = threading.Barrier(20)

    def request(_: int) -> Decision:
        decision = limiter.acquire("k", 3)
        decided.wait()
        return decision

    with ThreadPoolExecutor(20) as pool:
        decisions = list(pool.map(request, range(20)))
    assert sum(map(bool, decisions)) == 3
    with ThreadPoolExecutor(20) as pool:  # each twice, and at the same time
        assert sum(pool.map(limiter.refund, decisions * 2)) == 9
    assert limiter.peek("k").used <= 1


# block


def test_a_block(store_uri: str) -> None:
    limiter, clock = limiter_of("5/minute", store_uri)
    limiter.acquire("k", 2)
    limiter.block("k", 90)
    for decision in (limiter.acquire("k"), limiter.acquire("k", 0), limiter.peek("k"), limiter.peek("k", 0)):
        assert (decision.allowed, decision.blocked, decision.never) == (False, True, False)
        assert (decision.limit_name, decision.limit_index) == ("block", None)
        assert (decision.remaining, decision.retry_after) == (0, 90.0)
        assert [standing.limit_name for standing in decision.standings] == ["block"]
    assert not limiter.allow("k", 0)
    assert limiter.acquire("other").blocked is False
    clock.advance_us(89_999_999)
    assert limiter.peek("k").retry_after == 0.000_001
    clock.advance_us(1)
    assert limiter.acquire("k").limit_index == 0


def test_a_block_holds_under_any_limits(store_uri: str) -> None:
    limiter, clock = limiter_of("5/minute", store_uri)
    other = Limiter(["unlimited", "concurrency: 5 for 30s"], store_uri, clock=clock)
    other.block("k", timedelta(seconds=90))
    assert limiter.acquire("k").blocked
    assert other.acquire("k").blocked


def test_a_later_block_replaces_it(store_uri: str) -> None:
    limiter, _ = limiter_of("5/minute", store_uri)
    limiter.block("k", 90)
    limiter.block("k", 30)
    assert limiter.peek("k").retry_after == 30.0
    limiter.block("k", 60)
    assert limiter.peek("k").retry_after == 60.0


def test_a_block_is_lifted(store_uri: str) -> None:
    limiter, _ = limiter_of("5/minute", store_uri)
    limiter.unblock("never blocked")
    limiter.acquire("k", 2)
    limiter.block("k", 90)
    limiter.unblock("k")
    assert limiter.acquire("k").used == 3
    limiter.block("k", 90)
    limiter.reset("k")
    assert limiter.acquire("k").used == 1


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, None, "60", 2**31, 1e-7])
def test_bad_blocks(seconds: float) -> None:
    with pytest.raises(InvalidArgument, match="block"):
        Limiter("5/minute").block("k", seconds)


# acquire_many


def test_acquire_many(store_uri: str) -> None:
    limiter, _ = limiter_of("3/minute; 9/hour", store_uri)
    decisions = limiter.acquire_many(["a", b"b", ("a", 2), ("c", 4), "a", ("b", 0)])
    assert [decision.allowed for decision in decisions] == [True, True, True, False, False, True]
    assert [decision.used for decision in decisions] == [1, 1, 3, 0, 3, 1]
    assert decisions[3].never
    assert decisions[4].retry_after == 20.0
    assert [limiter.peek(key).used for key in "abc"] == [3, 1, 0]
    assert [limiter.refund(decision) for decision in decisions] == [1, 1, 2, 0, 0, 0]


def test_acquire_many_takes_any_iterable(store_uri: str) -> None:
    limiter, _ = limiter_of("3/minute", store_uri)
    assert limiter.acquire_many([]) == []
    assert len(limiter.acquire_many(key for key in ("a", "b"))) == 2
    assert len(limiter.acquire_many({"a": 1, "b": 2}.items())) == 2
    assert [limiter.peek(key).used for key in "ab"] == [2, 3]
    many = limiter.acquire_many([f"user:{number}" for number in range(500)])
    assert all(many)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("", "key"),
        (5, "key 5"),
        (None, "key None"),
        (("k", -1), "cost -1"),
        (("k", 1.5), "cost 1.5"),
        (("k", 2**53 + 1), "cost"),
        (("k",), "pair|key, cost"),
        (("k", 1, 2), "key, cost"),
        ((5, 1), "key 5"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_bad_item_is_named_and_nothing_is_taken(store_uri: str, bad: str, what: str) -> None:
    limiter, _ = limiter_of("3/minute", store_uri)
    with pytest.raises(InvalidArgument, match=f"^item 2: .*({what})"):
        limiter.acquire_many(["a", ("b", 2), bad, "c"])
    assert [limiter.peek(key).used for key in "abc"] == [0, 0, 0]


@pytest.mark.parametrize("items", ["abc", b"abc", None, 5])
def test_what_is_no_list_of_items(items: list[str]) -> None:
    with pytest.raises(InvalidArgument, match="items"):
        Limiter("3/minute").acquire_many(items)


def test_what_an_iterable_raises_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        Limiter("3/minute").acquire_many(str(1 // number) for number in (1, 0))


# stats, and a memory that is bounded


def test_stats_count_every_answer(store_uri: str) -> None:
    limiter, _ = limiter_of("2/minute", store_uri)
    limiter.acquire("a")
    limiter.allow("a")
    limiter.allow("a")
    limiter.acquire("a", 3)
    limiter.acquire_many(["b", ("b", 3), "a"])
    limiter.peek("a")
    limiter.block("c", 60)
    limiter.acquire("c")
    limiter.refund(limiter.acquire("d", 2))
    stats = limiter.stats()
    assert (stats.allowed, stats.refused, stats.never, stats.blocked) == (4, 2, 2, 1)
    assert (stats.errors, stats.degraded, stats.refunded, stats.evicted) == (0, 0, 2, 0)
    assert (stats.keys > 0) is not store_uri.startswith("redis:")
    assert repr(stats).startswith(
        "Stats(allowed=4, refused=2, never=2, blocked=1, errors=0, degraded=0, refunded=2, keys="
    )
    with pytest.raises(AttributeError):
        stats.allowed = 9  # type: ignore[misc]


def test_stats_count_errors() -> None:
    limiter = Limiter("2/minute", "redis://127.0.0.1:1", on_store_failure="raise")
    for _ in range(2):
        with pytest.raises(OSError, match="127"):
            limiter.allow("k")
    assert limiter.stats().errors == 2


def test_a_full_memory_forgets_the_least_indebted() -> None:
    store = Store("memory:?max_keys=1000")
    limiter = Limiter("2/hour", store)
    for number in range(5000):
        assert limiter.allow(f"k{number}")
    stats = limiter.stats()
    assert stats.keys <= 1000
    assert stats.evicted >= 4000


def test_a_full_memory_may_refuse() -> None:
    clock = ManualClock(10**15)
    limiter = Limiter("1/minute", "memory:?max_keys=100&when_full=refuse", clock=clock)
    kept = 0
    for number in range(300):
        with suppress(StoreFull):
            limiter.acquire(f"k{number}")
            kept += 1
    assert 0 < kept <= 100
    assert limiter.stats().evicted == limiter.stats().errors == 300 - kept
    clock.advance(60)  # nothing is owed any more
    assert limiter.acquire("new")


@pytest.mark.parametrize("parameters", ["max_keys=0", "max_keys=many", "when_full=explode", "colour=red"])
def test_bad_parameters_of_a_memory(parameters: str) -> None:
    with pytest.raises(ValueError, match=parameters.partition("=")[0]):
        Store(f"memory:?{parameters}")


# Errors


def operations(limiter: Limiter, decision: Decision) -> list[Callable[[], object]]:
    return [
        lambda: limiter.acquire_many(["k"]),
        lambda: limiter.wait("k"),
        lambda: limiter.refund(decision),
        lambda: limiter.commit(decision, 1),
        lambda: limiter.release(decision),
        lambda: limiter.block("k", 1),
        lambda: limiter.unblock("k"),
    ]


def test_a_closed_limiter(store_uri: str) -> None:
    limiter = Limiter("5/minute; concurrency: 5 for 30s", store_uri)
    decisions = [limiter.acquire("k", 2), limiter.acquire("k", 9)]
    limiter.close()
    for decision in decisions:
        for operation in operations(limiter, decision):
            with pytest.raises(Closed):
                operation()
    assert limiter.stats().allowed == 1


def test_a_callable_clock_is_read_once_an_operation(store_uri: str) -> None:
    readings: list[float] = []

    def read() -> float:
        readings.append(0.0)
        return 1.7e9

    limiter = Limiter("5/minute; concurrency: 5 for 30s", store_uri, clock=read)
    for operation in operations(limiter, limiter.acquire("k")):
        readings.clear()
        operation()
        assert len(readings) == 1


def test_what_a_clock_raises_is_passed_on(store_uri: str) -> None:
    broken = False

    def read() -> float:
        if broken:
            raise LookupError("no time")
        return 1.7e9

    limiter = Limiter("5/minute; concurrency: 5 for 30s", store_uri, clock=read)
    decision = limiter.acquire("k")
    broken = True
    for operation in operations(limiter, decision):
        with pytest.raises(LookupError, match="no time"):
            operation()
    broken = False
    assert limiter.refund(decision) == 1


@pytest.mark.parametrize("what", ["k", None, 1, True])
def test_only_a_decision_is_settled(what: Decision) -> None:
    limiter = Limiter("5/minute")
    with pytest.raises(InvalidArgument, match=f"refund {what!r}"):
        limiter.refund(what)
    with pytest.raises(InvalidArgument, match=f"commit {what!r}"):
        limiter.commit(what, 1)
