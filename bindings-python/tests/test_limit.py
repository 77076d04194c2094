"""Limits: their constructors, their notation, and that they are values."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from mirab import InvalidArgument, InvalidLimit, Limit, Limiter, ManualClock


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Limit.token_bucket(5, 60), "5/minute"),
        (Limit.token_bucket(5, 60.0), "5/minute"),
        (Limit.token_bucket(5, timedelta(minutes=1)), "5/minute"),
        (Limit.token_bucket(100, 1, 300), "100/second burst 300"),
        (Limit.token_bucket(100, per=1, capacity=300), "100/second burst 300"),
        (Limit.token_bucket(5, 60, name="login"), "login=5/minute"),
        (Limit.fixed_window(10, 60), "fixed_window: 10/minute"),
        (Limit.fixed_window(10, 60, "first"), "fixed_window: 10/minute from first"),
        (Limit.fixed_window(10, timedelta(minutes=1), anchor="clock"), "fixed_window: 10/minute"),
        (Limit.fixed_window(10, 60, "first", name="login"), "login=fixed_window: 10/minute from first"),
        (Limit.leaky_bucket(50, 1, 20), "leaky_bucket: 50/second queue 20"),
        (Limit.leaky_bucket(50, per=timedelta(seconds=1), queue=0), "leaky_bucket: 50/second"),
        (Limit.leaky_bucket(50, 1), "leaky_bucket: 50/second"),
        (Limit.leaky_bucket(50, 1, 2**32 - 2, name="jobs"), "jobs=leaky_bucket: 50/second queue 4294967294"),
        (Limit.sliding_window(10, 60), "sliding_window: 10/minute"),
        (Limit.sliding_window(10, timedelta(hours=1), name="login"), "login=sliding_window: 10/hour"),
        (Limit.sliding_log(5, 60), "sliding_log: 5/minute"),
        (Limit.sliding_log(5, 60, None), "sliding_log: 5/minute"),
        (Limit.sliding_log(5, 60, 6), "sliding_log: 5/minute buckets 6"),
        (Limit.sliding_log(5, per=64.0, buckets=1024), "sliding_log: 5/64 seconds buckets 1024"),
        (Limit.sliding_log(5, 60, name="login"), "login=sliding_log: 5/minute"),
        (Limit.concurrency(20, 30), "concurrency: 20 for 30 seconds"),
        (Limit.concurrency(20, expires=timedelta(minutes=1)), "concurrency: 20 for 1 minute"),
        (Limit.concurrency(20, 0.25, name="reports"), "reports=concurrency: 20 for 250 ms"),
        (Limit.deny(), "deny"),
        (Limit.unlimited(), "unlimited"),
        (Limit.parse("5 PER 60 Seconds"), "5/minute"),
    ],
)
def test_constructors_and_notation_agree(limit: Limit, text: str) -> None:
    assert str(limit) == text
    assert limit == Limit.parse(text)
    assert hash(limit) == hash(Limit.parse(text))
    assert text in repr(limit)
    assert limit.name == (text.partition("=")[0] if "=" in text else text)


@pytest.mark.parametrize(
    "rate", [5, 5.0, "5", Fraction(5), Fraction(10, 2), Decimal(5), Decimal("5.0"), "10/2", "5e0", "0.5e1"]
)
def test_a_refill_rate_of_five_in_every_type(rate: float) -> None:
    limit = Limit.token_bucket(capacity=20, refill_rate=rate)
    assert limit == Limit.token_bucket(5, 1, 20)
    assert limit.capacity == 20


@pytest.mark.parametrize(
    ("rate", "wait"),
    [
        (Fraction(1, 3), 3.0),
        ("1/3", 3.0),
        (0.1, 10.0),
        (Decimal("0.1"), 10.0),
        ("1e-3", 1000.0),
        (3, 0.333334),
    ],
)
def test_refill_rates_are_exact(rate: float, wait: float) -> None:
    limiter = Limiter(Limit.token_bucket(capacity=1, refill_rate=rate), clock=ManualClock())
    assert limiter.allow("k")
    assert limiter.acquire("k").retry_after == wait


@pytest.mark.parametrize(
    "rate",
    [0, -1, float("nan"), float("inf"), Decimal("NaN"), "fast", "", 1j, True, None, [5], "1/0", "1e999"],
)
def test_bad_refill_rates(rate: float) -> None:
    with pytest.raises((InvalidLimit, InvalidArgument)):
        Limit.token_bucket(capacity=20, refill_rate=rate)


@pytest.mark.parametrize("count", [0, -1, 2**32, 2**64, 1.0, 1.5, True, "5", None, float("nan")])
def test_bad_counts(count: int) -> None:
    makers: list[Callable[[], Limit]] = [
        lambda: Limit.token_bucket(count, 60),
        lambda: Limit.leaky_bucket(count, 60),
        lambda: Limit.fixed_window(count, 60),
        lambda: Limit.sliding_window(count, 60),
        lambda: Limit.sliding_log(count, 60),
        lambda: Limit.sliding_log(count, 60, 6),
        lambda: Limit.concurrency(count, 60),
        lambda: Limit.token_bucket(capacity=count, refill_rate=1),
    ]
    for make in makers:
        with pytest.raises(InvalidLimit) as caught:
            make()
        assert count is None or str(count) in str(caught.value)


@pytest.mark.parametrize(
    "per",
    [
        0,
        -1,
        1e-7,
        float("nan"),
        float("inf"),
        2.0**60,
        10**400,
        True,
        "60",
        None,
        timedelta(0),
        timedelta(seconds=-1),
    ],
)
def test_bad_periods(per: float) -> None:
    makers: list[Callable[[], Limit]] = [
        lambda: Limit.token_bucket(5, per),
        lambda: Limit.leaky_bucket(5, per),
        lambda: Limit.fixed_window(5, per),
        lambda: Limit.sliding_window(5, per),
        lambda: Limit.sliding_log(5, per),
        lambda: Limit.concurrency(5, per),
    ]
    for make in makers:
        with pytest.raises((InvalidLimit, InvalidArgument)):
            make()


@pytest.mark.parametrize("queue", [-1, 2**32 - 1, 2**64, 1.0, 1.5, True, "5", None])
def test_bad_queues(queue: int) -> None:
    with pytest.raises(InvalidLimit, match="queue") as caught:
        Limit.leaky_bucket(5, 60, queue)
    assert str(queue) in str(caught.value)


@pytest.mark.parametrize("buckets", [-1, 0, 7, 1025, 2**64, 1.0, 1.5, True, "5"])
def test_bad_buckets(buckets: int) -> None:
    with pytest.raises(InvalidLimit, match="buckets") as caught:
        Limit.sliding_log(5, 60, buckets)
    assert str(buckets) in str(caught.value)


def test_a_bad_expiry_is_named() -> None:
    for value in (0, "soon"):
        with pytest.raises(InvalidArgument, match=f"expires .*{value}"):
            Limit.concurrency(5, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        Limit.token_bucket,
        lambda: Limit.token_bucket(5),  # type: ignore[call-overload]
        lambda: Limit.token_bucket(per=60),  # type: ignore[call-overload]
        lambda: Limit.token_bucket(capacity=5),  # type: ignore[call-overload]
        lambda: Limit.token_bucket(refill_rate=5),  # type: ignore[call-overload]
        lambda: Limit.token_bucket(5, 60, refill_rate=5),  # type: ignore[call-overload]
        lambda: Limit.token_bucket(5, 60, 0),
        lambda: Limit.fixed_window(5, 60, "noon"),  # type: ignore[arg-type]
        lambda: Limit.leaky_bucket(100_000, 2**20, 2**32 - 2),
        lambda: Limit.sliding_log(5, 60, name="a b"),
        lambda: Limit.concurrency(5, 60, name=""),
        lambda: Limit.parse("leaky_bucket: 5/minute burst 7"),
        lambda: Limit.parse("sliding_window: 5/minute buckets 6"),
        lambda: Limit.parse("concurrency: 5/minute"),
        lambda: Limit.parse("5/minute; 6/hour"),
        lambda: Limit.parse(5),  # type: ignore[arg-type]
        lambda: Limit.parse(""),
        lambda: Limit.token_bucket(5, 60, name="a b"),
        lambda: Limit.token_bucket(5, 60, name=""),
        lambda: Limit.token_bucket(5, 60, name="x" * 65),
        lambda: Limit.deny().with_name("ü"),
        lambda: Limit.parse("5/minute").with_scope("x" * 257),
    ],
)
def test_bad_constructions(make: Callable[[], Limit]) -> None:
    with pytest.raises((InvalidLimit, InvalidArgument)):
        make()


def test_properties() -> None:
    limit = Limit.parse("100/second burst 300")
    assert (limit.name, limit.capacity, limit.period) == ("100/second burst 300", 300, 1.0)
    named = limit.with_name("api")
    assert (named.name, str(named)) == ("api", "api=100/second burst 300")
    leaky = Limit.leaky_bucket(50, 1, 20)
    assert (leaky.capacity, leaky.period) == (21, 1.0)
    places = Limit.concurrency(20, 30)
    assert (places.capacity, places.period) == (20, 30.0)
    assert Limit.deny().capacity == 0
    assert Limit.deny().period is None


def test_limits_are_values() -> None:
    limit = Limit.parse("5/minute")
    assert len({limit, Limit.token_bucket(5, 60), Limit.parse("6/minute")}) == 2
    assert limit != Limit.fixed_window(5, 60)
    assert limit != limit.with_name("login")
    assert limit != limit.with_scope("route")
    assert limit.with_scope("route") == limit.with_scope("route")
    assert limit != "5/minute"
    with pytest.raises(AttributeError):
        limit.name = "other"  # type: ignore[misc]


def test_a_scope_has_buckets_of_its_own(store_uri: str) -> None:
    limit = Limit.parse("1/hour")
    assert Limiter(limit, store_uri).allow("k")
    assert Limiter(limit.with_scope("route"), store_uri).allow("k")
    assert not Limiter(limit.with_scope("route"), store_uri).allow("k")


def test_deny_and_unlimited(store_uri: str) -> None:
    refusal = Limiter(Limit.deny(), store_uri).acquire("k")
    assert (refusal.allowed, refusal.never, refusal.limit, refusal.remaining) == (False, True, 0, 0)
    unlimited = Limiter("unlimited", store_uri)
    assert all(unlimited.allow("k", 1000) for _ in range(100))


@pytest.mark.parametrize(
    ("text", "longest_delay", "is_concurrency"),
    [
        ("leaky_bucket: 4/second queue 3", 0.75, False),
        ("leaky_bucket: 3/second queue 1", 0.333_334, False),
        ("leaky_bucket: 4/second", 0.0, False),
        ("4/second burst 9", 0.0, False),
        ("fixed_window: 4/day in Africa/Cairo", 0.0, False),
        ("concurrency: 4 for 30s", 0.0, True),
        ("deny", 0.0, False),
    ],
)
def test_what_lasts_longer_than_a_decision(text: str, longest_delay: float, *, is_concurrency: bool) -> None:
    limit = Limit.parse(text)
    assert (limit.longest_delay, limit.is_concurrency) == (longest_delay, is_concurrency)
