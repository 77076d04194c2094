"""Several limits, one decision: all admit or nothing is taken, and the strictest answers."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from mirab import Limit, Limiter, ManualClock

ALL = [
    "9/minute burst 20",
    "leaky_bucket: 9/minute queue 20",
    "fixed_window: 20/minute",
    "fixed_window: 20/minute from first",
    "sliding_window: 20/minute",
    "sliding_log: 20/minute",
    "sliding_log: 20/minute buckets 6",
    "concurrency: 20 for 60s",
]


def test_a_text_of_several_limits(store_uri: str) -> None:
    limiter = Limiter("1000/hour; 20000/day", store_uri, clock=ManualClock())
    assert [str(limit) for limit in limiter.limits] == ["1000/hour", "20000/day"]
    decision = limiter.acquire("k", 10)
    assert [(standing.limit_name, standing.used) for standing in decision.standings] == [
        ("1000/hour", 10),
        ("20000/day", 10),
    ]


def test_all_or_none(store_uri: str) -> None:
    last = "last=fixed_window: 1/minute from first"
    limiter = Limiter([*ALL, last], store_uri, clock=ManualClock())
    assert limiter.allow("k")
    refusal = limiter.acquire("k")
    assert (refusal.allowed, refusal.limit_name, refusal.limit_index) == (False, "last", len(ALL))
    assert [standing.used for standing in refusal.standings] == [1] * (len(ALL) + 1)
    assert [standing.used for standing in limiter.peek("k").standings] == [1] * (len(ALL) + 1)


def test_all_or_none_under_concurrent_callers(store_uri: str) -> None:
    limiter = Limiter([*ALL[:6], "last=fixed_window: 2/hour from first"], store_uri)
    with ThreadPoolExecutor(8) as pool:
        passed = sum(pool.map(lambda _: limiter.allow("k"), range(200)))
    assert passed == 2
    assert all(standing.used <= 2 for standing in limiter.peek("k").standings)
    assert limiter.peek("k").standings[6].used == 2


def test_the_longest_wait_answers(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("2/minute; fixed_window: 2/hour; sliding_log: 2/10 minutes", store_uri, clock=clock)
    assert limiter.acquire("k", 2)
    refusal = limiter.acquire("k")
    assert (refusal.limit_name, refusal.retry_after) == ("fixed_window: 2/hour", 3600.0)
    assert [standing.next_after for standing in refusal.standings] == [30.0, 3600.0, 600.0]
    clock.advance(3600)
    assert limiter.allow("k", 2)


def test_never_answers_before_any_wait(store_uri: str) -> None:
    limiter = Limiter("10/minute; 2/hour", store_uri, clock=ManualClock())
    assert limiter.allow("k", 2)
    refusal = limiter.acquire("k", 5)
    assert (refusal.never, refusal.retry_after, refusal.limit_name) == (True, None, "2/hour")
    assert [standing.used for standing in refusal.standings] == [2, 2]


def test_the_fewest_left_answers_an_admission(store_uri: str) -> None:
    limiter = Limiter("5/minute; 3/hour; x=3/day", store_uri, clock=ManualClock())
    decision = limiter.acquire("k")
    assert (decision.limit_name, decision.limit, decision.remaining) == ("3/hour", 3, 2)
    assert [standing.remaining for standing in decision.standings] == [4, 2, 2]


def test_the_longest_delay_is_told(store_uri: str) -> None:
    limiter = Limiter(
        "1/day burst 2; leaky_bucket: 10/second queue 9; slow=leaky_bucket: 4/second queue 9",
        store_uri,
        clock=ManualClock(),
    )
    assert limiter.acquire("k").delay == 0.0
    decision = limiter.acquire("k")
    assert (decision.limit_name, decision.delay) == ("1/day burst 2", 0.25)


@pytest.mark.parametrize(
    ("limit", "next_after", "reset_after"),
    [
        ("4/minute", 15.0, 45.0),
        ("leaky_bucket: 4/minute queue 3", 15.0, 45.0),
        ("fixed_window: 4/minute", 60.0, 60.0),
        ("fixed_window: 4/minute from first", 60.0, 60.0),
        ("sliding_log: 4/minute", 60.0, 60.0),
        ("sliding_log: 4/minute buckets 6", 70.0, 70.0),
        ("concurrency: 4 for 60s", 60.0, 60.0),
    ],
)
def test_next_after(store_uri: str, limit: str, next_after: float, reset_after: float) -> None:
    clock = ManualClock()
    limiter = Limiter(limit, store_uri, clock=clock)
    assert limiter.peek("k").standings[0].next_after is None
    (standing,) = limiter.acquire("k", 3).standings
    assert (standing.next_after, standing.reset_after) == (next_after, reset_after)
    assert (standing.used, standing.remaining) == (3, 1)
    clock.advance(next_after)
    assert limiter.peek("k").remaining > 1


def test_sixteen_limits(store_uri: str) -> None:
    limits = [Limit.token_bucket(count, 3600) for count in range(16, 0, -1)]
    limiter = Limiter(limits, store_uri, clock=ManualClock())
    assert limiter.acquire("k").limit == 1
    refusal = limiter.acquire("k")
    assert (refusal.limit_name, len(refusal.standings)) == ("1/hour", 16)
