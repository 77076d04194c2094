"""Calendar windows: every boundary of five years, against Python's own time zones, to the microsecond."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from mirab import InvalidLimit, Limiter, ManualClock

ZONES = ["Africa/Cairo", "America/New_York"]
FIRST, LAST = date(2026, 1, 1), date(2030, 12, 31)
US = timedelta(microseconds=1)
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def date_in(zone: str, us: int) -> date:
    return (EPOCH + us * US).astimezone(ZoneInfo(zone)).date()


@cache
def first_instant(zone: str, day: date) -> int:
    """Find the first microsecond of a date in a zone by looking: at each quarter of an hour around it."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
    start = (midnight - timedelta(hours=15) - EPOCH) // US
    for quarter in range(4 * 30):
        us = start + quarter * 900_000_000
        if date_in(zone, us) == day:
            assert date_in(zone, us - 1) == day - DAY
            return us
    raise AssertionError((zone, day))


def days() -> Iterator[date]:
    for number in range((LAST - FIRST).days + 2):
        yield FIRST + number * DAY


def boundaries(zone: str, unit: str) -> list[int]:
    """Return the instants from 2026 to the start of 2031 at which a window of the zone begins."""
    begins = {
        "day": days(),
        "week": (day for day in days() if day.isoweekday() == 1),
        "month": (day for day in days() if day.day == 1),
    }
    return [first_instant(zone, day) for day in begins[unit]]


def agree(limiter: Limiter, clock: ManualClock, start: int, end: int) -> None:
    """Check the window from `start` to `end` at its first, its last and a middle microsecond."""
    for us in (start, start + 1, (start + end) // 2, end - 1):
        clock.set_us(us)
        decision = limiter.acquire("k", 10_000)
        assert decision or us > start
        peek = limiter.peek("k")
        assert not peek
        assert peek.used == 10_000
        assert peek.retry_after == peek.reset_after == (end - us) / 1e6
    clock.set_us(end)
    assert limiter.peek("k").used == 0
    assert limiter.peek("k").reset_after == 0.0


@pytest.mark.parametrize("unit", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ZONES)
def test_every_boundary_of_five_years(zone: str, unit: str) -> None:
    clock = ManualClock()
    limiter = Limiter(f"fixed_window: 10000/{unit} in {zone}", clock=clock)
    instants = boundaries(zone, unit)
    assert len(instants) == {"day": 1827, "week": 261, "month": 61}[unit]
    for start, end in pairwise(instants):
        agree(limiter, clock, start, end)


@pytest.mark.parametrize("unit", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ZONES)
def test_boundaries_on_every_store(store_uri: str, zone: str, unit: str) -> None:
    clock = ManualClock()
    limiter = Limiter(f"fixed_window: 10000/{unit} in {zone}", store_uri, clock=clock)
    instants = boundaries(zone, unit)
    for index, (start, end) in enumerate(pairwise(instants)):
        clocks_are_turned = unit == "day" and end - start != DAY // US
        if clocks_are_turned or index % 9 == 0:
            agree(limiter, clock, start, end)


@pytest.mark.parametrize(
    ("limit", "before", "hours"),
    [
        # Across a year's end.
        ("month in Africa/Cairo", "2026-12-31T21:59:59.999999+00:00", 31 * 24),
        ("month in America/New_York", "2027-01-01T04:59:59.999999+00:00", 31 * 24),
        ("week in America/New_York", "2028-01-03T04:59:59.999999+00:00", 7 * 24),
        ("day in Africa/Cairo", "2029-12-31T21:59:59.999999+00:00", 24),
        # 2028 has a 29 February, 2027 has none.
        ("month in Africa/Cairo", "2028-01-31T21:59:59.999999+00:00", 29 * 24),
        ("month in America/New_York", "2027-02-01T04:59:59.999999+00:00", 28 * 24),
        ("day in America/New_York", "2028-02-29T04:59:59.999999+00:00", 24),
        ("day in America/New_York", "2028-03-01T04:59:59.999999+00:00", 24),
        # New York turns its clocks on the second Sunday in March and the first in November.
        ("day in America/New_York", "2026-03-08T04:59:59.999999+00:00", 23),
        ("day in America/New_York", "2026-11-01T03:59:59.999999+00:00", 25),
        ("month in America/New_York", "2026-03-01T04:59:59.999999+00:00", 31 * 24 - 1),
        # Cairo at midnight: the last Friday in April has none, the last Thursday in October has two.
        ("day in Africa/Cairo", "2026-04-23T21:59:59.999999+00:00", 23),
        ("day in Africa/Cairo", "2026-10-28T20:59:59.999999+00:00", 25),
        ("month in Africa/Cairo", "2030-09-30T20:59:59.999999+00:00", 31 * 24 + 1),
        ("day in Africa/Cairo", "2030-10-30T20:59:59.999999+00:00", 25),
    ],
)
def test_known_windows(store_uri: str, limit: str, before: str, hours: int) -> None:
    us = (datetime.fromisoformat(before) - EPOCH) // US
    clock = ManualClock(us)
    limiter = Limiter(f"fixed_window: 10000/{limit}", store_uri, clock=clock)
    assert limiter.acquire("k", 10_000).reset_after == 0.000_001
    assert limiter.acquire("k").retry_after == 0.000_001
    clock.advance_us(1)
    assert limiter.acquire("k", 10_000).reset_after == hours * 3600.0
    assert limiter.acquire("k").retry_after == hours * 3600.0


def test_a_window_of_the_wall_clock(store_uri: str) -> None:
    limiter = Limiter("fixed_window: 10000/month in Africa/Cairo", store_uri)
    before = datetime.now(timezone.utc)
    reset = limiter.acquire("k").reset_after
    after = datetime.now(timezone.utc)
    today = before.astimezone(ZoneInfo("Africa/Cairo")).date()
    following = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    end = EPOCH + first_instant("Africa/Cairo", following) * US
    # A Redis of another machine might be off; the one of the tests is on this one.
    assert (
        end - after - timedelta(seconds=1) <= timedelta(seconds=reset) <= end - before + timedelta(seconds=1)
    )


@pytest.mark.parametrize(
    "text", ["5/month in Mars/Olympus", "5/hour in Africa/Cairo", "5/2days in Africa/Cairo"]
)
def test_what_is_no_calendar_window(text: str) -> None:
    with pytest.raises(InvalidLimit):
        Limiter(f"fixed_window: {text}")
