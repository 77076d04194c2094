"""Concurrency: places that are taken until they are released or expire, on every store."""

import pytest

from mirab import Closed, InvalidArgument, Limiter, ManualClock


def test_places_come_back(store_uri: str) -> None:
    limiter = Limiter("concurrency: 2 for 30s", store_uri, clock=ManualClock())
    first, second, third = (limiter.acquire("k") for _ in range(3))
    assert (first.remaining, second.remaining) == (1, 0)
    assert (third.allowed, third.retry_after) == (False, 30.0)
    assert limiter.release(first) == 1
    assert limiter.peek("k").remaining == 1
    assert limiter.acquire("k")
    assert not limiter.acquire("k")
    assert limiter.acquire("other")


def test_a_place_comes_back_once(store_uri: str) -> None:
    limiter = Limiter("concurrency: 2 for 30s", store_uri, clock=ManualClock())
    decision = limiter.acquire("k")
    limiter.acquire("k")
    assert [limiter.release(decision) for _ in range(3)] == [1, 0, 0]
    assert limiter.peek("k").used == 1


def test_a_cost_is_so_many_places(store_uri: str) -> None:
    limiter = Limiter("concurrency: 5 for 30s", store_uri, clock=ManualClock())
    decision = limiter.acquire("k", 3)
    assert limiter.peek("k").remaining == 2
    assert limiter.release(decision) == 1
    assert limiter.peek("k").remaining == 5


def test_a_place_expires(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("concurrency: 1 for 30s", store_uri, clock=clock)
    decision = limiter.acquire("k")
    clock.set_us(29_999_999)
    assert not limiter.acquire("k")
    clock.set_us(30_000_000)
    assert limiter.release(decision) == 0
    assert limiter.acquire("k")
    assert limiter.release(decision) == 0
    assert limiter.peek("k").used == 1


def test_nothing_to_release(store_uri: str) -> None:
    limiter = Limiter("concurrency: 1 for 30s; 1/hour", store_uri, clock=ManualClock())
    assert limiter.release(limiter.peek("k")) == 0
    assert limiter.release(limiter.acquire("k", 0)) == 0
    held = limiter.acquire("k")
    refused = limiter.acquire("k")
    never = limiter.acquire("k", 2)
    assert [limiter.release(decision) for decision in (refused, never, held)] == [0, 0, 1]
    rate = Limiter("5/minute; sliding_log: 6/minute", store_uri, clock=ManualClock())
    assert rate.release(rate.acquire("k")) == 0
    assert [standing.used for standing in rate.peek("k").standings] == [1, 1]


def test_a_rate_beside_it_stays_charged(store_uri: str) -> None:
    limiter = Limiter("concurrency: 2 for 30s; 5/hour", store_uri, clock=ManualClock())
    assert limiter.release(limiter.acquire("k")) == 1
    assert [standing.used for standing in limiter.peek("k").standings] == [0, 1]


def test_two_limits_are_two_leases(store_uri: str) -> None:
    limiter = Limiter("concurrency: 2 for 30s; slow=concurrency: 3 for 60s", store_uri, clock=ManualClock())
    decision = limiter.acquire("k")
    assert limiter.release(decision) == 2
    assert [standing.used for standing in limiter.peek("k").standings] == [0, 0]


def test_another_limiter_ends_nothing(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("concurrency: 2 for 30s", store_uri, clock=clock)
    decision = limiter.acquire("k")
    for limits in ("concurrency: 3 for 30s", "x=concurrency: 2 for 30s", "5/minute", "deny"):
        assert Limiter(limits, store_uri, clock=clock).release(decision) == 0
    assert Limiter("concurrency: 2 for 30s", clock=clock).release(decision) == 0  # a memory of its own
    assert limiter.peek("k").used == 1
    again = Limiter("concurrency: 2 for 30s", store_uri, clock=clock)
    assert again.release(decision) == 1  # it shares the places


def test_reset_ends_every_lease(store_uri: str) -> None:
    limiter = Limiter("concurrency: 1 for 30s", store_uri, clock=ManualClock())
    decision = limiter.acquire("k")
    limiter.reset("k")
    assert limiter.release(decision) == 0
    assert limiter.acquire("k")


def test_the_servers_clock(store_uri: str) -> None:
    limiter = Limiter("concurrency: 1 for 30s", store_uri)
    decision = limiter.acquire(b"\x00\xff{}")
    assert not limiter.acquire(b"\x00\xff{}")
    assert limiter.release(decision) == 1
    assert limiter.acquire(b"\x00\xff{}")


def test_a_callable_clock_is_read_once_a_release(store_uri: str) -> None:
    readings: list[float] = []

    def read() -> float:
        readings.append(0.0)
        return 1.7e9

    limiter = Limiter("concurrency: 1 for 30s", store_uri, clock=read)
    decision = limiter.acquire("k")
    assert limiter.release(decision) == 1
    assert len(readings) == 2


def test_a_closed_limiter_releases_nothing(store_uri: str) -> None:
    limiter = Limiter("concurrency: 1 for 30s", store_uri)
    decisions = [limiter.acquire("k"), limiter.acquire("k")]
    limiter.close()
    for decision in decisions:
        with pytest.raises(Closed):
            limiter.release(decision)


@pytest.mark.parametrize("what", ["k", None, 1, True])
def test_only_a_decision_is_released(what: object) -> None:
    with pytest.raises(InvalidArgument, match=f"release {what!r}"):
        Limiter("concurrency: 1 for 30s").release(what)  # type: ignore[arg-type]
