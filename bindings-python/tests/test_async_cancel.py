"""Places under `concurrency` come back, whenever a task is cancelled, and whatever else the program does."""

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager

import pytest

from children import in_child
from loops import Run, every_loop, until
from mirab import AsyncLimiter, Limiter, _aside
from mirab._aside import Asked, answer_of
from redis_server import PATIENCE, Server

TASKS = 400
PLACES = f"concurrency: {TASKS + 100} for 600s"
BOTH = f"{PLACES}; 10000/30 days"


async def used(limiter: AsyncLimiter) -> list[int]:
    return [standing.used for standing in (await limiter.peek("k")).standings]


async def all_come_back(limiter: AsyncLimiter) -> None:
    async def none_is_taken() -> bool:
        return (await used(limiter))[0] == 0

    await until(none_is_taken)


class Holding:
    """Tasks that all hold a place, until they are cancelled."""

    def __init__(self, limiter: AsyncLimiter) -> None:
        self.inside = 0
        self.tasks = [asyncio.create_task(self._hold(limiter)) for _ in range(TASKS)]

    async def _hold(self, limiter: AsyncLimiter) -> None:
        async with limiter.hold("k"):
            self.inside += 1
            await asyncio.sleep(600)

    async def all_inside(self) -> "Holding":
        await until(lambda: self.inside == TASKS)
        return self

    def cancel(self) -> None:
        for task in self.tasks:
            task.cancel()

    async def ended(self) -> None:
        done, _ = await asyncio.wait(self.tasks, timeout=PATIENCE)
        assert len(done) == TASKS
        assert all(task.cancelled() for task in done)


@asynccontextmanager
async def busy_default_executor() -> AsyncIterator[None]:
    """Jobs of the program's own that leave no thread of the loop's to anybody."""
    ends = threading.Event()
    jobs = [asyncio.get_running_loop().run_in_executor(None, ends.wait, PATIENCE) for _ in range(40)]
    try:
        yield
        assert not any(job.done() for job in jobs)
    finally:
        ends.set()
        await asyncio.gather(*jobs)


@every_loop
@pytest.mark.parametrize("times", [1, 2, 5])
def test_cancelled_again_while_releasing(store_uri: str, times: int, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(PLACES, store_uri)
        holding = await Holding(limiter).all_inside()
        for _ in range(times):
            holding.cancel()
            await asyncio.sleep(0)
        await holding.ended()
        await all_come_back(limiter)

    run(ask())


@every_loop
@pytest.mark.parametrize("times", [1, 2])
def test_released_although_the_programs_executor_is_busy(store_uri: str, times: int, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(PLACES, store_uri)
        async with busy_default_executor():
            holding = await Holding(limiter).all_inside()
            for _ in range(times):
                holding.cancel()
                await asyncio.sleep(0)
            await holding.ended()
            await all_come_back(limiter)
            async with limiter.hold("k"):
                pass
            assert await used(limiter) == [0]

    run(ask())


@every_loop
def test_no_operation_waits_for_the_programs_executor(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("100/hour", store_uri)
        async with busy_default_executor():
            (decision,) = await limiter.acquire_many([("k", 5)])
            await limiter.commit(decision, 3)
            assert await limiter.refund(await limiter.acquire("k", 7)) == 7
            await limiter.block("k", 60)
            await limiter.unblock("k")
            assert (await limiter.health()).ok
            assert await used(limiter) == [3]
            await limiter.reset("k")
            assert await used(limiter) == [0]

    run(ask())


@every_loop
@pytest.mark.parametrize("max_wait", [None, 60])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_cancelled_while_entering(store_uri: str, turns: int, max_wait: int | None, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(BOTH, store_uri)

        async def enter() -> None:
            async with limiter.hold("k", max_wait=max_wait):
                await asyncio.sleep(600)

        tasks = [asyncio.create_task(enter()) for _ in range(TASKS)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(end, BaseException) for end in await asyncio.gather(*tasks, return_exceptions=True)
        )
        await until(lambda: all_were_admitted(limiter))
        await all_come_back(limiter)

    async def all_were_admitted(limiter: AsyncLimiter) -> bool:
        return (await used(limiter))[1] == TASKS

    run(ask())


@every_loop
@pytest.mark.parametrize("in_a_thread", [False, True])
def test_cancelled_between_the_answer_and_its_turn(run: Run, *, in_a_thread: bool) -> None:
    async def ask() -> None:
        asked: Asked[int] = Future() if in_a_thread else asyncio.get_running_loop().create_future()
        late: list[int] = []
        answered = asyncio.create_task(answer_of(asked, lambda asked: late.append(asked.result())))
        await asyncio.sleep(0)
        asked.set_result(7)
        await asyncio.sleep(0)
        answered.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answered
        assert late == [7]

    run(ask())


@every_loop
def test_cancelled_before_its_turn_comes(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("concurrency: 5 for 600s; leaky_bucket: 1/hour queue 5", store_uri)

        async def enter() -> None:
            async with limiter.hold("k", max_wait=36000):
                pytest.fail("it was entered")

        async with limiter.hold("k"):
            task = asyncio.create_task(enter())

            async def both_hold() -> bool:
                return (await used(limiter))[0] == 2

            await until(both_hold)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            async def one_holds() -> bool:
                return (await used(limiter))[0] == 1

            await until(one_holds)

    run(ask())


@every_loop
@pytest.mark.parametrize("many", [False, True])
def test_what_nobody_gets_to_know_of(store_uri: str, run: Run, *, many: bool) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(PLACES, store_uri)

        async def take() -> None:
            await (limiter.acquire_many(["k", "other"]) if many else limiter.acquire("k"))
            await limiter.reset("k")  # a store in this process answers at once

        tasks = [asyncio.create_task(take()) for _ in range(50)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await all_come_back(limiter)

    run(ask())


@every_loop
def test_what_fails_after_a_cancellation_is_logged(
    server: Server, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter(PLACES, server.uri("timeout_ms=500"), on_store_failure="raise")
        inside = asyncio.Event()

        async def hold() -> None:
            async with limiter.hold("k"):
                inside.set()
                await asyncio.sleep(600)

        task = asyncio.create_task(hold())
        await inside.wait()
        server.freeze()
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: any("could not be given back" in line for line in caplog.messages))

    try:
        with caplog.at_level(logging.WARNING, "mirab"):
            run(ask())
    finally:
        server.thaw()


def test_without_a_thread(redis_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def ask() -> None:
        limiter = AsyncLimiter(PLACES, redis_uri)
        async with limiter.hold("k"):
            assert await used(limiter) == [1]
        assert await used(limiter) == [0]
        assert await limiter.refund(await limiter.acquire("k")) == 1

    monkeypatch.setattr(_aside, "start", cannot)
    asyncio.run(ask())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(server: Server) -> None:
    limiter = AsyncLimiter(PLACES, server.uri())

    async def hold() -> None:
        async with limiter.hold("k"):
            pass
        assert await used(limiter) == [0]

    asyncio.run(hold())
    for _ in range(5):
        in_child(lambda: asyncio.run(hold()))
    asyncio.run(hold())


LEAVES = """
import asyncio, sys
from mirab import AsyncLimiter

async def hold(limiter):
    async with limiter.hold("k"):
        await asyncio.sleep(600)

async def main():
    limiter = AsyncLimiter(sys.argv[1], sys.argv[2])
    tasks = [asyncio.create_task(hold(limiter)) for _ in range(50)]
    while (await limiter.peek("k")).used < 50:
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    for _ in range(2):
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)

asyncio.run(main())
"""

ENTERS = """
import asyncio, sys
from mirab import AsyncLimiter

async def hold(limiter):
    async with limiter.hold("k"):
        await asyncio.sleep(600)

async def main():
    limiter = AsyncLimiter(sys.argv[1], sys.argv[2])
    tasks = [asyncio.create_task(hold(limiter)) for _ in range(50)]
    for _ in range(int(sys.argv[3])):
        await asyncio.sleep(0)
    for task in tasks[:25]:
        task.cancel()

asyncio.run(main())
"""


def test_a_process_that_ends_gives_its_places_back_first(redis_uri: str) -> None:
    subprocess.run([sys.executable, "-c", LEAVES, PLACES, redis_uri], check=True, timeout=PATIENCE)
    assert Limiter(PLACES, redis_uri).peek("k").used == 0


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_loop_that_ends_waits_for_what_was_asked(redis_uri: str, turns: int) -> None:
    program = [sys.executable, "-W", "error", "-c", ENTERS, BOTH, redis_uri, str(turns)]
    done = subprocess.run(program, check=True, timeout=PATIENCE, capture_output=True, text=True)
    assert done.stderr == ""
    assert [standing.used for standing in Limiter(BOTH, redis_uri).peek("k").standings] == [0, 50]
