"""`hold` and `limit`: the context manager and the decorator, which raise Refused."""

import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

import mirab
from mirab import Closed, InvalidArgument, Limiter, ManualClock, Refused, Unsupported

PLACES = "concurrency: 2 for 30s"


def test_hold_takes_and_releases(store_uri: str) -> None:
    limiter = Limiter(f"{PLACES}; 5/hour", store_uri, clock=ManualClock())
    with limiter.hold("k", 2) as decision:
        assert decision.allowed
        assert [standing.used for standing in limiter.peek("k").standings] == [2, 2]
    assert [standing.used for standing in limiter.peek("k").standings] == [0, 2]


def test_hold_raises_refused(store_uri: str) -> None:
    limiter = Limiter(PLACES, store_uri, clock=ManualClock())
    with limiter.hold("k"), limiter.hold("k"):
        with pytest.raises(Refused) as caught, limiter.hold("k"):
            pytest.fail("it was entered")
        assert caught.value.decision.retry_after == 30.0
        assert not isinstance(caught.value, mirab.MirabError)
        assert limiter.peek("k").used == 2
    assert limiter.peek("k").used == 0


def test_an_exception_releases_too(store_uri: str) -> None:
    limiter = Limiter(PLACES, store_uri, clock=ManualClock())
    with pytest.raises(LookupError), limiter.hold("k"):
        raise LookupError
    assert limiter.peek("k").used == 0


def test_the_block_may_settle(store_uri: str) -> None:
    limiter = Limiter(f"9/hour; {PLACES}", store_uri, clock=ManualClock())
    with limiter.hold("k", 2) as decision:
        limiter.commit(decision, 5)
    assert [standing.used for standing in limiter.peek("k").standings] == [5, 0]
    with limiter.hold("k", 2) as decision:
        assert limiter.refund(decision) == 2
    assert [standing.used for standing in limiter.peek("k").standings] == [5, 0]


def test_hold_waits(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("1/minute", store_uri, clock=clock)
    with limiter.hold("k", max_wait=1):
        assert clock.now_us == 0
    with pytest.raises(Refused), limiter.hold("k", max_wait=59):
        pytest.fail("it was entered")
    assert clock.now_us == 0
    with limiter.hold("k", max_wait=60):
        assert clock.now_us == 60_000_000


def test_threads_hold_no_more_than_there_are(store_uri: str) -> None:
    limiter = Limiter(PLACES, store_uri)
    inside, most = [0], [0]
    lock = threading.Lock()

    def work(_: int) -> None:
        with limiter.hold("k", max_wait=60):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            with lock:
                inside[0] -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert most[0] == 2
    assert limiter.peek("k").used == 0


def test_a_failing_release_never_hides_the_exception(caplog: pytest.LogCaptureFixture) -> None:
    limiter = Limiter(PLACES)

    def fail() -> NoReturn:
        limiter.close()
        raise LookupError

    with caplog.at_level(logging.WARNING, "mirab"), pytest.raises(LookupError), limiter.hold("k"):
        fail()
    assert "until it expires" in caplog.text
    limiter = Limiter(PLACES)
    with pytest.raises(Closed), limiter.hold("k"):
        limiter.close()


def test_a_decorated_function(store_uri: str) -> None:
    limiter = Limiter("2/minute", store_uri, clock=ManualClock())

    @limiter.limit(key="reports")
    def report(user: str, *, pages: int = 1) -> str:
        """Make a report."""
        return user * pages

    assert report("a", pages=3) == "aaa"
    assert report("b") == "b"
    with pytest.raises(Refused) as caught:
        report("c")
    assert str(caught.value) == "refused by 2/minute: retry after 30.0 seconds"
    assert (report.__name__, report.__doc__) == ("report", "Make a report.")
    assert limiter.peek("reports").used == 2


def test_a_key_and_a_cost_of_the_arguments(store_uri: str) -> None:
    limiter = Limiter("5/minute", store_uri, clock=ManualClock())

    def whose(user: str, pages: int) -> str:
        return f"{'user' if pages else 'nobody'}:{user}"

    def units(user: str, pages: int) -> int:
        return pages if user else 0

    @limiter.limit(key=whose, cost=units)
    def report(user: str, pages: int) -> str:
        return user * pages

    assert report("a", 4) == "aaaa"
    assert report("b", pages=5) == "bbbbb"
    with pytest.raises(Refused):
        report("a", 2)
    assert [limiter.peek(key).used for key in ("user:a", "user:b")] == [4, 5]


def test_a_method_and_a_wait(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter(f"1/minute; {PLACES}", store_uri, clock=clock)

    class Maker:
        name = "m"

        @limiter.limit(key=lambda self: self.name, max_wait=60)
        def make(self) -> int:
            return clock.now_us + limiter.peek("m").standings[1].used

    assert [Maker().make() for _ in range(3)] == [1, 60_000_001, 120_000_001]
    assert limiter.peek("m").standings[1].used == 0


def test_what_cannot_be_decorated() -> None:
    limiter = Limiter("5/minute")

    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    async def asynchronous() -> AsyncIterator[int]:
        yield 1

    for function in (coroutine, generator, asynchronous):
        with pytest.raises(Unsupported, match="hold"):
            limiter.limit(key="k")(function)
    for thing in ("k", None, Limiter):
        with pytest.raises(InvalidArgument):
            limiter.limit(key="k")(thing)  # type: ignore[type-var]
    with pytest.raises(TypeError):
        limiter.limit("k")  # type: ignore[call-arg]


def test_bad_arguments_raise_when_it_is_called() -> None:
    limiter = Limiter("5/minute")
    with pytest.raises(InvalidArgument, match="key"):
        limiter.limit(key="")(lambda: None)()
    with pytest.raises(InvalidArgument, match="timeout"), limiter.hold("k", max_wait=-1):
        pytest.fail("it was entered")


def test_the_limiter_is_one_class() -> None:
    limiter = Limiter("5/minute")
    assert repr(Limiter) == "<class 'mirab.Limiter'>"
    assert repr(limiter) == '<mirab.Limiter "5/minute" on memory>'
    with limiter as same:
        assert same is limiter
    with pytest.raises(AttributeError):
        limiter.colour = "red"  # type: ignore[attr-defined]
