"""`AsyncLimiter`: the operations of `Limiter`, awaited, on every store."""

import asyncio
import inspect
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import mirab
from loops import Run, every_loop, until
from mirab import (
    AsyncLimiter,
    Closed,
    Decision,
    InvalidArgument,
    InvalidLimit,
    InvalidUri,
    Limit,
    Limiter,
    ManualClock,
)
from shared import Shared

LATE = 1.0  # how late a loaded machine may wake a task

POLICIES = [
    "5/minute",
    "leaky_bucket: 1/second queue 3; 9/hour",
    "fixed_window: 6/day from first",
    "sliding_window: 6/minute",
    "sliding_log: 6/minute",
    "concurrency: 3 for 30s; 7/hour",
    "deny",
    "unlimited",
]

STEPS: list[tuple[Any, ...]] = [
    ("acquire", "a", 3),
    ("acquire", b"a", 3),
    ("allow", "a"),
    ("allow", "a", 9),
    ("peek", "a"),
    ("acquire_many", ["b", ("c", 2), "b"]),
    ("wait", "a", 2, 30),
    ("wait", "a", 2, timedelta(seconds=0.5)),
    ("block", "d", 60),
    ("acquire", "d"),
    ("unblock", "d"),
    ("acquire", "d"),
    ("reset", "a"),
    ("peek", "a", 4),
    ("stats",),
    ("health",),
]


@pytest.fixture
def other_uri(store_uri: str) -> Iterator[str]:
    """A second store of the same kind, empty too."""
    place, mark, parameters = store_uri.partition("?")
    uri = f"{place}-other?{parameters}" if place.startswith("shm:") else f"{place}{mark}{parameters}-other"
    store = mirab.Store(uri)
    yield uri
    del store


def said(answer: object) -> str:
    """What an answer says, but for what differs from one moment or one store to the next."""
    if isinstance(answer, mirab.Health):
        return repr((answer.ok, answer.circuit, answer.server_version))
    if isinstance(answer, mirab.Stats):
        return repr(answer).partition(", keys=")[0]
    return repr(answer)


@every_loop
@pytest.mark.parametrize("policy", POLICIES)
def test_it_answers_as_a_limiter_does(store_uri: str, other_uri: str, policy: str, run: Run) -> None:
    limiter = Limiter(policy, store_uri, clock=ManualClock())
    expected: list[object] = []
    for name, *arguments in STEPS:
        answer = getattr(limiter, name)(*arguments)
        expected.append(said(answer))
        if isinstance(answer, Decision) and name != "peek":
            expected.append(limiter.release(answer))
            limiter.commit(answer, 1)
            expected.append(limiter.refund(answer))

    async def ask() -> list[object]:
        limiter = AsyncLimiter(policy, other_uri, clock=ManualClock())
        answers: list[object] = []
        for name, *arguments in STEPS:
            asked = getattr(limiter, name)(*arguments)
            answer = await asked if inspect.isawaitable(asked) else asked
            answers.append(said(answer))
            if isinstance(answer, Decision) and name != "peek":
                answers.append(await limiter.release(answer))
                await limiter.commit(answer, 1)
                answers.append(await limiter.refund(answer))
        return answers

    assert run(ask()) == expected


def test_it_has_the_operations_of_a_limiter() -> None:
    names = {name for name in dir(Limiter) if not name.startswith("_")}
    assert names == {name for name in dir(AsyncLimiter) if not name.startswith("_")}
    for name in names - {"close", "hold", "limit", "limits", "stats"}:
        assert inspect.iscoroutinefunction(getattr(AsyncLimiter, name)), name
    made, ours = inspect.signature(Limiter), inspect.signature(AsyncLimiter)
    assert made.parameters.keys() == ours.parameters.keys()
    for name in names - {"limits"}:
        theirs = inspect.signature(getattr(Limiter, name)).parameters.values()
        ours_too = inspect.signature(getattr(AsyncLimiter, name)).parameters.values()
        if name not in ("hold", "limit"):  # theirs are given in Python
            assert [(it.name, it.default) for it in theirs] == [(it.name, it.default) for it in ours_too]


def test_it_is_made_as_a_limiter_is() -> None:
    with pytest.raises(InvalidLimit):
        AsyncLimiter("0/second")
    with pytest.raises(InvalidUri):
        AsyncLimiter("5/minute", "mongodb://h")
    with pytest.raises(InvalidArgument, match="sometimes"):
        AsyncLimiter("5/minute", on_store_failure="sometimes")
    with pytest.raises(InvalidArgument, match="instances"):
        AsyncLimiter("5/minute", instances=0)
    limiter = AsyncLimiter(["5/minute", Limit.sliding_log(9, 60)])
    assert [str(limit) for limit in limiter.limits] == ["5/minute", "sliding_log: 9/minute"]
    assert repr(limiter) == '<mirab.AsyncLimiter "5/minute; sliding_log: 9/minute" on memory>'
    assert AsyncLimiter.__module__ == "mirab"
    assert "AsyncLimiter" in mirab.__all__


@pytest.mark.parametrize("kind", ["memory", "shm"])
def test_on_this_machine_an_await_never_leaves_the_loop(shared: Shared, kind: str) -> None:
    """There is no loop at all here: nothing asks for one."""

    def value(coroutine: Any) -> Any:
        with pytest.raises(StopIteration) as ended:
            coroutine.send(None)
        return ended.value.value

    uri = "memory:" if kind == "memory" else shared.uri()
    limiter = AsyncLimiter("5/minute; concurrency: 5 for 30s", uri, clock=ManualClock())
    decision = value(limiter.acquire("k", 2))
    assert decision.used == 2
    assert value(limiter.allow("k")) is True
    assert value(limiter.peek("k")).used == 3
    assert len(value(limiter.acquire_many(["a", "b"]))) == 2
    assert value(limiter.wait("k")).used == 4
    assert value(limiter.commit(decision, 1)) is None
    assert value(limiter.release(decision)) == 1
    assert value(limiter.refund(value(limiter.acquire("a")))) == 1
    assert value(limiter.block("b", 60)) is None
    assert value(limiter.unblock("b")) is None
    assert value(limiter.reset("k")) is None
    assert value(limiter.health()).ok


@every_loop
def test_what_is_wrong_is_raised_where_it_is_awaited(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("5/minute", store_uri)
        decision: Any = "decision"
        for asked in (
            limiter.acquire(""),
            limiter.acquire("\ud800"),
            limiter.allow("k", -1),
            limiter.peek("k", 2**53 + 1),
            limiter.acquire_many(["a", ""]),
            limiter.wait("k", timeout=-1),
            limiter.wait(""),
            limiter.refund(decision),
            limiter.commit(decision, 1),
            limiter.release(decision),
            limiter.block("k", 0),
        ):
            with pytest.raises(InvalidArgument):
                await asked
        assert (await limiter.peek("k")).used == 0

    run(ask())


@every_loop
def test_tasks_of_every_kind(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("50/hour", store_uri)
        assert await asyncio.create_task(limiter.acquire("k"))
        assert await asyncio.wait_for(limiter.allow("k"), 5)
        assert await asyncio.shield(limiter.acquire("k"))
        assert all(await asyncio.gather(*(limiter.allow("k") for _ in range(5))))
        assert [await each for each in asyncio.as_completed([limiter.allow("k"), limiter.allow("k")])]
        assert (await limiter.peek("k")).used == 10

    run(ask())


# wait


@every_loop
def test_only_the_task_sleeps_that_waits(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("20/second burst 1", store_uri)
        assert await limiter.allow("k")
        ticks = 0
        waiting = asyncio.create_task(limiter.wait("k"))
        begun = time.monotonic()
        while not waiting.done():
            await asyncio.sleep(0.001)
            ticks += 1
        assert 0.04 < time.monotonic() - begun < LATE
        assert ticks > 3
        assert (await waiting).allowed

    run(ask())


@every_loop
def test_a_turn_is_waited_for(store_uri: str, run: Run) -> None:
    async def ask() -> list[int]:
        clock = ManualClock()
        limiter = AsyncLimiter("leaky_bucket: 1/second queue 1", store_uri, clock=clock)
        turns = []
        for _ in range(4):
            assert await limiter.wait("k")
            turns.append(clock.now_us)
        real = AsyncLimiter("leaky_bucket: 20/second queue 9", store_uri)
        begun = time.monotonic()
        decisions = await asyncio.gather(*(real.wait("k") for _ in range(3)))
        assert 0.09 < time.monotonic() - begun < LATE
        assert all(decisions)
        return turns

    assert run(ask()) == [0, 1_000_000, 2_000_000, 3_000_000]


@every_loop
def test_a_place_is_waited_for(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("concurrency: 1 for 60s", store_uri)
        first = await limiter.acquire("k")
        assert not await limiter.wait("k", timeout=0.03)
        waiting = asyncio.create_task(limiter.wait("k", timeout=30))
        await asyncio.sleep(0.03)
        assert not waiting.done()
        assert await limiter.release(first) == 1
        assert await waiting

    run(ask())


@every_loop
def test_closing_wakes_who_waits(store_uri: str, run: Run) -> None:
    async def ask(*, from_a_thread: bool) -> None:
        limiter = AsyncLimiter("1/hour", store_uri)
        await limiter.reset("k")
        assert await limiter.allow("k")
        waiting = [asyncio.create_task(limiter.wait("k")) for _ in range(3)]
        await until(lambda: len(limiter._asleep) == 3)
        begun = time.monotonic()
        if from_a_thread:
            await asyncio.to_thread(limiter.close)
        else:
            limiter.close()
        for each in waiting:
            with pytest.raises(Closed):
                await each
        assert time.monotonic() - begun < LATE
        for asked in (limiter.acquire("k"), limiter.wait("k"), limiter.peek("k"), limiter.reset("k")):
            with pytest.raises(Closed):
                await asked
        limiter.close()
        assert not limiter._asleep

    run(ask(from_a_thread=False))
    run(ask(from_a_thread=True))


@every_loop
def test_closing_wakes_who_waits_in_any_loop(store_uri: str, run: Run) -> None:
    limiter = AsyncLimiter("1/hour", store_uri)
    ended: list[None] = []

    async def wait() -> None:
        await limiter.allow("k")
        with pytest.raises(Closed):
            await limiter.wait("k")
        ended.append(None)

    threads = [threading.Thread(target=run, args=(wait(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(limiter._asleep) < 3:
        time.sleep(0.001)
    limiter.close()
    for thread in threads:
        thread.join(30)
    assert len(ended) == 3


@every_loop
def test_a_wait_that_is_cancelled_leaves_nothing(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("1/hour", store_uri)
        assert await limiter.allow("k")
        waiting = asyncio.create_task(limiter.wait("k"))
        await until(lambda: len(limiter._asleep) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not limiter._asleep

    run(ask())


# The limiter itself


@every_loop
def test_leaving_the_context_closes_it(store_uri: str, run: Run) -> None:
    async def ask() -> None:
        async with AsyncLimiter("5/minute", store_uri) as limiter:
            assert await limiter.allow("k")
        with pytest.raises(Closed):
            await limiter.allow("k")

    run(ask())


@every_loop
def test_one_limiter_serves_one_loop_after_the_other(store_uri: str, run: Run) -> None:
    limiter = AsyncLimiter("5/hour", store_uri)
    assert [run(limiter.allow("k")) for _ in range(7)] == [True] * 5 + [False] * 2
    assert limiter.stats().allowed == 5


def test_a_subclass_is_one_too() -> None:
    class Own(AsyncLimiter):
        async def acquire(self, key: str | bytes, cost: Any = 1) -> Decision:
            return await super().acquire(key, 2 * cost)

    async def ask() -> None:
        async with Own("5/hour") as limiter:
            assert (await limiter.wait("k")).used == 2
            assert repr(limiter).startswith("<mirab.AsyncLimiter")

    asyncio.run(ask())
