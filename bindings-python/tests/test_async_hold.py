"""`AsyncLimiter.hold` and `AsyncLimiter.limit`."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from loops import Run, every_loop, until
from mirab import AsyncLimiter, Decision, InvalidArgument, Refused, Unsupported

PLACES = "concurrency: 2 for 30s"


@every_loop
def test_hold_takes_and_releases(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(f"{PLACES}; 5/hour", store_uri)
        async with limiter.hold("k", 2) as decision:
            assert [standing.used for standing in decision.standings] == [2, 2]
            with pytest.raises(Refused) as caught:
                async with limiter.hold("k"):
                    pytest.fail("it was entered")
            assert not caught.value.decision
        assert [standing.used for standing in (await limiter.peek("k")).standings] == [0, 2]

    run(ask())


@every_loop
def test_hold_waits(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("concurrency: 1 for 30s", store_uri)
        inside = 0

        async def work() -> None:
            nonlocal inside
            async with limiter.hold("k", max_wait=30):
                inside += 1
                assert inside == 1
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(work() for _ in range(5)))
        async with limiter.hold("k"):
            with pytest.raises(Refused):
                async with limiter.hold("k", max_wait=0.02):
                    pytest.fail("it was entered")

    run(ask())


async def is_used(limiter: AsyncLimiter) -> bool:
    return (await limiter.peek("k")).used > 0


@every_loop
def test_an_exception_and_a_cancellation_release_too(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(PLACES, store_uri)
        with pytest.raises(LookupError):
            async with limiter.hold("k", 2):
                raise LookupError

        async def work() -> None:
            async with limiter.hold("k", 2):
                await asyncio.sleep(30)

        task = asyncio.create_task(work())
        await until(lambda: is_used(limiter))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await limiter.peek("k")).used == 0

    run(ask())


def test_the_blocks_own_exception_says_more(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(PLACES)

        async def work() -> None:
            async with limiter.hold("k"):
                limiter.close()
                raise LookupError

        with pytest.raises(LookupError):
            await work()

    with caplog.at_level(logging.WARNING, "mirab"):
        asyncio.run(ask())
    assert ["could not be given back" in record.getMessage() for record in caplog.records] == [True]


@every_loop
def test_limit_decorates_a_coroutine_function(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("3/hour", store_uri)

        @limiter.limit(key=lambda user, **_: f"reports:{user}", cost=lambda _, *, size: size)
        async def report(user: str, *, size: int) -> str:
            """Make a report."""
            await asyncio.sleep(0)
            return f"{user}: {size}"

        assert report.__doc__ == "Make a report."
        assert await report("ann", size=2) == "ann: 2"
        with pytest.raises(Refused):
            await report("ann", size=2)
        assert await report("bob", size=2) == "bob: 2"
        assert (await limiter.peek("reports:ann")).used == 2

    run(ask())


async def generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [lambda: None, generator, print])
def test_what_is_no_coroutine_function(function: Any) -> None:
    with pytest.raises(Unsupported, match="coroutine function"):
        AsyncLimiter("5/hour").limit(key="k")(function)


@pytest.mark.parametrize("function", ["work", 5, Decision])
def test_what_cannot_be_decorated(function: Any) -> None:
    with pytest.raises(InvalidArgument, match="decorated"):
        AsyncLimiter("5/hour").limit(key="k")(function)
