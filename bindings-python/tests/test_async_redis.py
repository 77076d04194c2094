"""`AsyncLimiter` on Redis: the loop itself carries the requests, many in one round trip."""

import asyncio
import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from loops import Run, every_loop, until
from mirab import AsyncLimiter, Limiter, MirabError, StoreTimeout, StoreUnavailable, Unsupported
from redis_server import PATIENCE, Server

DEADLINE = 0.05
QUICK = "timeout_ms=50&connect_timeout_ms=50"


def exact(limits: str, uri: str) -> AsyncLimiter:
    """A limiter that decides by its store alone."""
    return AsyncLimiter(limits, uri, on_store_failure="raise")


def count(answers: Iterable[object]) -> int:
    return sum(map(bool, answers))


def entries(folder: str) -> int:
    return sum(1 for _ in Path("/proc/self", folder).iterdir())


# Many at once


@every_loop
@pytest.mark.parametrize("tasks", [64, 1000, 10_000])
def test_exactly_the_permitted_number_pass(server: Server, tasks: int, run: Run) -> None:
    async def ask() -> None:
        limiter = exact("50/hour", server.uri())
        assert count(await asyncio.gather(*(limiter.allow("k") for _ in range(tasks)))) == 50
        before = server.decisions_asked()
        decisions = await asyncio.gather(*(limiter.acquire(f"user:{n // 2}", 30) for n in range(tasks)))
        assert count(decisions) == tasks // 2
        assert all(decision.used == 30 for decision in decisions)
        # Each travels, the second of a pair too: nothing is known of its key when it is asked.
        assert server.decisions_asked() - before <= tasks // 10

    run(ask())


@every_loop
def test_sixty_four_tasks_over_a_thousand_keys(server: Server, run: Run, say: Callable[[str], None]) -> None:
    in_all, keys, capacity = 200_000, 1000, 120
    limiter = exact(f"{capacity}/30 days", server.uri())

    async def worker(first: int) -> int:
        return count([await limiter.allow(f"user:{n % keys}") for n in range(first, in_all, 64)])

    async def ask() -> int:
        return sum(await asyncio.gather(*(worker(first) for first in range(64))))

    begun = time.monotonic()
    assert run(ask()) == keys * capacity
    commands = server.decisions_asked()
    say(f"{in_all} decisions in {time.monotonic() - begun:.1f} s, {commands} commands")
    assert commands < in_all / 10


def test_limiters_on_one_store_share_the_loops_connection(server: Server) -> None:
    async def ask() -> None:
        limiters = [exact(limits, server.uri()) for limits in ("5/hour", "sliding_log: 5/hour", "9/day")]
        before = server.decisions_asked()
        asked = [limiter.allow("k") for limiter in limiters for _ in range(20)]
        assert count(await asyncio.gather(*asked)) == 19
        assert server.connections() == 1
        assert server.decisions_asked() - before <= 2
        other = exact("5/hour", server.uri("prefix=other&timeout_ms=5000"))
        assert await other.allow("k")
        assert server.connections() == 2

    asyncio.run(ask())


def test_one_task_waits_for_nobody(server: Server) -> None:
    """Each decision goes out at once: as many round trips as decisions, and no thread."""

    async def ask() -> None:
        limiter = exact("500/hour", server.uri())
        assert await limiter.allow("k")
        before, threads = server.decisions_asked(), entries("task")
        for _ in range(50):
            assert (await limiter.acquire("k")).allowed
        assert server.decisions_asked() - before == 50
        assert entries("task") <= threads  # what connected may have ended meanwhile

    asyncio.run(ask())


# Cancelled


@every_loop
def test_what_is_cancelled_stays_charged_and_troubles_nobody(server: Server, run: Run) -> None:
    complaints: list[dict[str, Any]] = []

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        limiter = exact("1000/hour", server.uri())
        assert await limiter.allow("warm")
        tasks = [asyncio.create_task(limiter.acquire("k")) for _ in range(20)]
        await asyncio.sleep(0)  # now they have asked
        for task in tasks[::2]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True, False] * 10
        assert (await limiter.peek("k")).used == 20
        assert await limiter.allow("k")

    run(ask())
    gc.collect()
    assert complaints == []


@every_loop
def test_giving_up_before_the_deadline(server: Server, run: Run) -> None:
    async def ask() -> None:
        limiter = exact("1000/hour", server.uri())
        assert await limiter.allow("k")
        server.freeze()
        try:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(limiter.allow("k"), 0.02)
        finally:
            server.thaw()
        await until(lambda: limiter.allow("k"))

    run(ask())


# Loops that come and go


@every_loop
def test_a_loop_that_is_closed_leaves_nothing(server: Server, run: Run) -> None:
    limiter = exact("1000/hour", server.uri())
    loops = []

    async def ask() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        assert count(await asyncio.gather(*(limiter.allow("k") for _ in range(5)))) == 5
        assert server.connections() == 1

    run(ask())
    before = entries("fd")
    for _ in range(20):
        run(ask())
    gc.collect()
    assert entries("fd") <= before
    assert [loop() for loop in loops] == [None] * 21
    assert server.connections() == 0


@every_loop
def test_a_loop_that_is_closed_in_the_midst_of_it_leaves_nothing(server: Server, run: Run) -> None:
    limiter = exact("1000/hour", server.uri())

    async def ask() -> None:
        assert await limiter.allow("k")
        server.freeze()
        tasks = [asyncio.create_task(limiter.allow("k")) for _ in range(5)]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in tasks)

    run(limiter.allow("k"))
    before = entries("fd")
    for _ in range(3):
        run(ask())
        server.thaw()
    gc.collect()
    assert entries("fd") <= before


@every_loop
def test_many_loops_in_many_threads(server: Server, run: Run) -> None:
    limiter = exact("300/hour", server.uri())
    passed: list[int] = []

    async def ask() -> None:
        passed.append(count(await asyncio.gather(*(limiter.allow("k") for _ in range(50)))))

    def work() -> None:
        for _ in range(3):
            run(ask())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(passed) == 18
    assert sum(passed) == 300


def test_a_loop_may_move_to_another_thread(server: Server) -> None:
    limiter = exact("1000/hour", server.uri())
    loop = asyncio.new_event_loop()
    answers = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: answers.append(loop.run_until_complete(limiter.allow("k"))))
        thread.start()
        thread.join(PATIENCE)
        answers.append(loop.run_until_complete(limiter.allow("k")))
    loop.close()
    assert answers == [True] * 4


def test_without_a_loop_there_is_an_error(server: Server) -> None:
    asked = exact("5/hour", server.uri()).allow("k")
    with pytest.raises(RuntimeError, match="no running event loop"):
        asked.send(None)


def test_a_loop_that_cannot_watch_descriptors_is_named(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the proactor loop of Windows is.
    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_reader", asyncio.AbstractEventLoop.add_reader)
    for _ in range(2):
        with pytest.raises(Unsupported, match="add_reader"):
            asyncio.run(exact("5/hour", server.uri()).allow("k"))
    assert asyncio.run(AsyncLimiter("5/hour").allow("k"))


# On a bad day


@every_loop
def test_a_frozen_server_leaves_the_loop_turning(
    server: Server, run: Run, say: Callable[[str], None]
) -> None:
    limiter = AsyncLimiter("1000000/hour", server.uri(QUICK))
    longest = {"gap": 0.0, "call": 0.0}
    frozen = False
    degraded = 0

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.001)
            longest["gap"] = max(longest["gap"], time.monotonic() - last - 0.001)
            last = time.monotonic()

    async def work() -> None:
        nonlocal degraded
        while frozen:
            begun = time.monotonic()
            degraded += (await limiter.acquire("k")).degraded
            longest["call"] = max(longest["call"], time.monotonic() - begun)
            await asyncio.sleep(0.001)

    async def ask() -> None:
        nonlocal frozen
        await until(lambda: decided_there(limiter))
        ticking = asyncio.create_task(tick())
        server.freeze()
        frozen = True
        working = [asyncio.create_task(work()) for _ in range(20)]
        await asyncio.sleep(1)
        frozen = False
        await asyncio.gather(*working)
        server.thaw()
        await until(lambda: decided_there(limiter))
        ticking.cancel()

    run(ask())
    call, gap = longest["call"] * 1e3, longest["gap"] * 1e3
    say(f"{degraded} decided here, the longest call {call:.1f} ms, the longest standstill {gap:.1f} ms")
    assert degraded > 100
    assert longest["call"] < 10 * (DEADLINE + 0.02)
    assert longest["gap"] < 10 * DEADLINE
    assert limiter.stats().errors == 0


async def decided_there(limiter: AsyncLimiter) -> bool:
    return not (await limiter.acquire("k")).degraded


@every_loop
def test_a_server_that_is_killed_and_comes_back(
    server: Server, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("5/hour", server.uri(QUICK))
        await until(lambda: decided_there(limiter))
        for _ in range(2):
            await limiter.reset("k")
            assert await limiter.allow("k", 2)
            server.kill()
            answers = [await limiter.acquire("k") for _ in range(20)]
            assert count(answers) == 3
            assert all(answer.degraded for answer in answers)
            server.start()
            await until(lambda: decided_there(limiter))
        assert (await limiter.health()).opened == 2

    with caplog.at_level(logging.INFO, "mirab"):
        run(ask())
    said = [record.getMessage() for record in caplog.records]
    assert ["decides again" in text for text in said][:2] == [False, True]
    assert len(said) <= 4


@every_loop
def test_connections_that_are_dropped(server: Server, run: Run) -> None:
    async def ask() -> None:
        limiter = exact("1000/hour", server.uri())
        for used in range(1, 6):
            assert (await limiter.acquire("k")).used == used
            server.ask("CLIENT", "KILL", "TYPE", "normal")
            # It is told before the next decision, by a descriptor that is ready.
            await until(lambda: server.connections() == 0)
            await asyncio.sleep(0.01)

    run(ask())


@every_loop
def test_the_four_choices(server: Server, run: Run) -> None:
    async def ask(choice: str) -> list[bool]:
        limiter = AsyncLimiter("3/hour", server.uri(QUICK), on_store_failure=choice)
        answers = await asyncio.gather(*(limiter.acquire("k") for _ in range(9)))
        assert all(answer.degraded for answer in answers)
        assert limiter.stats().degraded == 9
        return [answer.allowed for answer in answers]

    async def fail() -> None:
        limiter = AsyncLimiter("3/hour", server.uri(QUICK), on_store_failure="raise")
        answers = await asyncio.gather(*(limiter.acquire("k") for _ in range(9)), return_exceptions=True)
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)
        assert limiter.stats().errors == 9

    server.kill()
    assert run(ask("local")) == [True] * 3 + [False] * 6
    assert run(ask("open")) == [True] * 9
    assert run(ask("closed")) == [False] * 9
    run(fail())


def test_what_is_late_is_an_error_of_its_own(server: Server) -> None:
    async def ask() -> None:
        limiter = exact("5/hour", server.uri(QUICK))
        server.freeze()
        answers = await asyncio.gather(*(limiter.allow("k") for _ in range(5)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreTimeout}
        with pytest.raises(MirabError):
            await limiter.reset("k")

    asyncio.run(ask())


def test_a_sync_and_an_async_limiter_draw_from_one_bucket(server: Server) -> None:
    limiter = Limiter("10/hour", server.uri(), on_store_failure="raise")

    async def ask() -> int:
        ours = exact("10/hour", server.uri())
        answers = await asyncio.gather(*(ours.allow("k") for _ in range(9)))
        return count(answers) + count([await asyncio.to_thread(limiter.allow, "k") for _ in range(9)])

    assert asyncio.run(ask()) == 10
