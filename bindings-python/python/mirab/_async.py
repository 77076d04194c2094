"""`AsyncLimiter`, loaded when it is first asked for: it needs asyncio, which a program may do without."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from mirab._aside import answer_of, could_not_be_given_back, give_back, start, start_surely
from mirab._async_hold import hold, limit
from mirab._mirab import (
    Closed,
    Decision,
    Health,
    Limit,
    Limiter,
    ManualClock,
    Stats,
    Store,
    Waiter,
    acquire_soon,
    allow_soon,
    decides_here,
    peek_soon,
)

if TYPE_CHECKING:
    from datetime import timedelta

    from typing_extensions import Self

    from mirab._aside import Asked

_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class AsyncLimiter:
    """A `Limiter` whose operations are awaited. It may be shared by loops, threads and forked children.

    On memory and shared memory an `await` never leaves the loop. On Redis, what the tasks of a loop ask in
    one turn of it travels together, on one connection that the loop itself watches: no thread waits. That
    is so for `acquire`, `allow`, `peek` and `wait`; the other operations run in a few threads of mirab's.
    What is cancelled may have been charged, and stays so; but places under `concurrency` that nobody gets
    to know of are given back, and what settles, blocks or resets goes on.

    It is an asynchronous context manager that closes itself.
    """

    def __init__(
        self,
        limits: str | Limit | Sequence[str | Limit],
        store: str | Store = "memory:",
        *,
        clock: ManualClock | Callable[[], float] | None = None,
        on_store_failure: str = "local",
        instances: SupportsIndex | None = None,
    ) -> None:
        """Make a limiter, with the arguments of `Limiter`. It needs no loop yet, and starts nothing."""
        self._limiter = Limiter(
            limits, store, clock=clock, on_store_failure=on_store_failure, instances=instances
        )
        self._waits = not decides_here(self._limiter)
        self._has_places = any(each.is_concurrency for each in self._limiter.limits)
        self._closed = False
        self._asleep: set[asyncio.Future[None]] = set()

    async def acquire(self, key: str | bytes, cost: SupportsIndex = 1) -> Decision:
        """Take `cost` units of `key` if they are there; see `Limiter.acquire`."""
        answer = acquire_soon(self._limiter, key, cost)
        if isinstance(answer, Decision):
            return answer
        if not self._has_places:
            return await answer
        return await answer_of(answer, self._give_back)

    async def allow(self, key: str | bytes, cost: SupportsIndex = 1) -> bool:
        """Like `acquire`, but answer only True or False."""
        answer = allow_soon(self._limiter, key, cost)
        return answer if isinstance(answer, bool) else await answer

    async def peek(self, key: str | bytes, cost: SupportsIndex = 1) -> Decision:
        """Say whether `cost` would be admitted now, and what is left before taking it; take nothing."""
        answer = peek_soon(self._limiter, key, cost)
        return answer if isinstance(answer, Decision) else await answer

    async def acquire_many(
        self, items: Iterable[str | bytes | tuple[str | bytes, SupportsIndex]]
    ) -> list[Decision]:
        """Acquire for several keys in one step; see `Limiter.acquire_many`."""
        if not self._waits:
            return self._limiter.acquire_many(items)
        asked = start(self._limiter.acquire_many, items)
        try:
            return await answer_of(asked, self._give_back_all)
        except asyncio.CancelledError:
            asked.cancel()  # it may not have begun
            raise

    async def wait(
        self, key: str | bytes, cost: SupportsIndex = 1, timeout: "float | timedelta | None" = None
    ) -> Decision:
        """Sleep until `cost` units are admitted, and return the last decision; see `Limiter.wait`.

        Only the task sleeps. A ManualClock is advanced instead.
        """
        waiter = Waiter(self._limiter, key, cost, timeout)
        while True:
            decision = await self.acquire(key, cost)
            pause = waiter.pause(decision)
            if pause is None:
                return decision
            try:
                await self._sleep(pause)
            except BaseException:
                if self._has_places:
                    give_back(self._limiter, decision)
                raise
            if decision:  # its turn has come
                return decision

    async def refund(self, decision: Decision) -> int:
        """Give back what `decision` took, never above full, and end its leases; see `Limiter.refund`."""
        return await self._aside(self._limiter.refund, decision)

    async def commit(self, decision: Decision, actual_cost: SupportsIndex) -> None:
        """Settle `decision` at a cost that is known only afterwards; see `Limiter.commit`."""
        await self._aside(self._limiter.commit, decision, actual_cost)

    async def release(self, decision: Decision) -> int:
        """End what `decision` holds of `concurrency` limits; see `Limiter.release`."""
        if not self._has_places:  # nothing is asked
            return self._limiter.release(decision)
        return await self._aside(self._limiter.release, decision, late=_tell_what_failed)

    def hold(
        self, key: str | bytes, cost: SupportsIndex = 1, *, max_wait: "float | timedelta | None" = None
    ) -> AbstractAsyncContextManager[Decision]:
        """Take `cost` units of `key` for an `async with` block, or raise Refused; see `Limiter.hold`."""
        return hold(self, key, cost, max_wait=max_wait)

    def limit(
        self,
        *,
        key: str | bytes | Callable[..., str | bytes],
        cost: SupportsIndex | Callable[..., SupportsIndex] = 1,
        max_wait: "float | timedelta | None" = None,
    ) -> Callable[[_Function], _Function]:
        """Return a decorator whose coroutine function runs under `hold`; see `Limiter.limit`."""
        return limit(self, key=key, cost=cost, max_wait=max_wait)

    async def block(self, key: str | bytes, seconds: "float | timedelta") -> None:
        """Refuse `key` for so long, under any limits of this store and prefix; see `Limiter.block`."""
        await self._aside(self._limiter.block, key, seconds)

    async def unblock(self, key: str | bytes) -> None:
        """Lift the block of `key`; none is fine."""
        await self._aside(self._limiter.unblock, key)

    async def reset(self, key: str | bytes) -> None:
        """Forget what was used of `key`, and its block; an unknown key is fine."""
        await self._aside(self._limiter.reset, key)

    async def health(self) -> Health:
        """Return how its store is, asked now; see `Limiter.health`."""
        return await self._aside(self._limiter.health)

    def stats(self) -> Stats:
        """Return how often it answered what, since it was made."""
        return self._limiter.stats()

    def close(self) -> None:
        """End it: afterwards, and for those who wait inside, every operation raises Closed. Twice is fine.

        Any thread may call it.
        """
        self._closed = True
        self._limiter.close()
        for woken in tuple(self._asleep):
            with suppress(RuntimeError):  # its loop is closed, and nobody waits there
                woken.get_loop().call_soon_threadsafe(_wake, woken)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of its policy."""
        return self._limiter.limits

    async def __aenter__(self) -> "Self":
        """Enter it: that is nothing but the limiter."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Name its limits and its store."""
        return repr(self._limiter).replace("mirab.Limiter", "mirab.AsyncLimiter", 1)

    async def _aside(
        self,
        operation: Callable[..., _Result],
        *arguments: object,
        late: "Callable[[Asked[_Result]], object]" = lambda _: None,
    ) -> _Result:
        """Call what may wait for a network where it does not hold up the loop; cancelled, it goes on."""
        if not self._waits:
            return operation(*arguments)
        return await answer_of(start_surely(operation, *arguments), late)

    def _give_back(self, asked: "Asked[Decision]") -> None:
        """Release what was admitted when its task was gone."""
        if asked.exception() is None:
            give_back(self._limiter, asked.result())

    def _give_back_all(self, asked: "Asked[list[Decision]]") -> None:
        if self._has_places and not asked.cancelled() and asked.exception() is None:
            for decision in asked.result():
                give_back(self._limiter, decision)

    async def _sleep(self, seconds: float) -> None:
        """Sleep; raise Closed as soon as the limiter is."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        self._asleep.add(woken)
        timer = loop.call_later(seconds, _wake, woken)
        try:
            if not self._closed:
                await woken
        finally:
            timer.cancel()
            self._asleep.discard(woken)
        if self._closed:
            raise Closed("the limiter is closed")


def _tell_what_failed(asked: "Asked[int]") -> None:
    if error := asked.exception():
        could_not_be_given_back(error)


def _wake(woken: "asyncio.Future[None]") -> None:
    if not woken.done():
        woken.set_result(None)


AsyncLimiter.__module__ = "mirab"
