"""What each algorithm promises, seen from Python on every store."""

import pytest

from mirab import Limit, Limiter, ManualClock


def test_a_leaky_bucket_tells_each_request_its_turn(store_uri: str) -> None:
    clock = ManualClock(5)
    limiter = Limiter("leaky_bucket: 2/second queue 3", store_uri, clock=clock)
    turns = [limiter.acquire("k") for _ in range(5)]
    assert [turn.allowed for turn in turns] == [True, True, True, True, False]
    assert [turn.delay for turn in turns] == [0.0, 0.5, 1.0, 1.5, 0.0]
    assert [turn.remaining for turn in turns] == [3, 2, 1, 0, 0]
    assert turns[4].retry_after == 0.5
    assert "delay=1.5" in repr(turns[3])
    assert "delay" not in repr(turns[4])
    assert limiter.peek("k", 0).delay == 2.0
    clock.advance(0.5)
    assert limiter.acquire("k").delay == 1.5


def test_a_cost_waits_for_its_first_unit(store_uri: str) -> None:
    limiter = Limiter(Limit.leaky_bucket(3, 1, 4), store_uri, clock=ManualClock())
    assert limiter.acquire("k", 3).delay == 0.0
    assert limiter.acquire("k", 2).delay == 1.0
    assert limiter.acquire("k", 6).never


def test_a_sliding_window_weighs_the_window_before(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("sliding_window: 100/minute", store_uri, clock=clock)
    assert limiter.acquire("k", 80)
    clock.advance(75)  # a quarter of this window: three quarters of the 80 still count
    told = limiter.acquire("k")
    assert (told.used, told.remaining, told.reset_after) == (61, 39, 105.0)
    refusal = limiter.acquire("k", 40)
    assert refusal.retry_after == 0.75
    clock.advance(0.75)
    assert limiter.allow("k", 40)


def test_a_sliding_log_never_admits_more_in_any_window(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("sliding_log: 3/10 seconds", store_uri, clock=clock)
    for second in (0, 4, 9):
        clock.set_us(second * 1_000_000)
        assert limiter.allow("k")
    refusal = limiter.acquire("k")
    assert (refusal.retry_after, refusal.reset_after) == (1.0, 10.0)
    clock.advance(1)
    assert limiter.allow("k")
    assert limiter.acquire("k").retry_after == 4.0


def test_a_sliding_log_in_buckets_counts_one_whole(store_uri: str) -> None:
    clock = ManualClock(9_000_000)
    limiter = Limiter(Limit.sliding_log(3, 60, 6), store_uri, clock=clock)
    assert limiter.allow("k", 3)
    assert limiter.acquire("k").retry_after == 61.0  # its bucket ends at 10 s, and counts until 70 s
    clock.set_us(69_999_999)
    assert not limiter.allow("k")
    clock.advance_us(1)
    assert limiter.allow("k", 3)


NAMED = [
    ("token_bucket: 4/minute", "token_bucket: 4/minute burst 8"),
    ("leaky_bucket: 4/minute queue 3", "leaky_bucket: 4/minute queue 7"),
    ("fixed_window: 4/minute", "fixed_window: 8/minute"),
    ("sliding_window: 4/minute", "sliding_window: 8/minute"),
    ("sliding_log: 4/minute", "sliding_log: 8/minute"),
    ("sliding_log: 4/minute buckets 6", "sliding_log: 8/minute buckets 6"),
    ("concurrency: 4 for 60s", "concurrency: 8 for 60s"),
]


@pytest.mark.parametrize(("small", "large"), NAMED)
def test_the_first_request_counts_and_a_refusal_takes_nothing(store_uri: str, small: str, large: str) -> None:
    assert large
    clock = ManualClock()
    limiter = Limiter(small, store_uri, clock=clock)
    told = [limiter.acquire("k") for _ in range(6)]
    assert [decision.used for decision in told] == [1, 2, 3, 4, 4, 4]
    assert [decision.allowed for decision in told] == [True] * 4 + [False] * 2
    wait = told[-1].retry_after
    assert wait
    clock.advance(wait)
    clock.set_us(clock.now_us - 1)
    assert not limiter.peek("k")
    clock.advance_us(1)
    assert limiter.allow("k")
    assert limiter.acquire("k", 5).never


@pytest.mark.parametrize(("small", "large"), NAMED)
def test_a_named_limit_keeps_what_was_used(store_uri: str, small: str, large: str) -> None:
    clock = ManualClock()
    assert Limiter(f"x={small}", store_uri, clock=clock).allow("k", 4)
    raised = Limiter(f"x={large}", store_uri, clock=clock)
    assert (raised.peek("k").limit, raised.peek("k").remaining) == (8, 4)
    assert raised.allow("k", 4)
    assert not raised.allow("k")
    lowered = Limiter(f"x={small}", store_uri, clock=clock).peek("k")
    assert (lowered.allowed, lowered.remaining) == (False, 0)


@pytest.mark.parametrize(("small", "large"), NAMED)
def test_without_a_name_other_numbers_are_another_bucket(store_uri: str, small: str, large: str) -> None:
    clock = ManualClock()
    assert Limiter(small, store_uri, clock=clock).allow("k", 4)
    assert Limiter(large, store_uri, clock=clock).peek("k").used == 0


@pytest.mark.parametrize(("small", "large"), NAMED)
def test_reset_and_what_is_over(store_uri: str, small: str, large: str) -> None:
    clock = ManualClock()
    limiter = Limiter([small, large], store_uri, clock=clock)
    assert limiter.allow("k", 3)
    limiter.reset("k")
    assert [standing.used for standing in limiter.peek("k").standings] == [0, 0]
    clock.advance(limiter.acquire("k", 3).reset_after)
    clock.advance(120)
    assert [standing.used for standing in limiter.peek("k").standings] == [0, 0]
