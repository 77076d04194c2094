"""The threads of `AsyncLimiter`, and answers that come although nobody waits for them any more."""

import asyncio
import concurrent.futures
import contextvars
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import TypeAlias, TypeVar

from mirab._mirab import Decision, Limiter, decides_here

logger = logging.getLogger("mirab")

_Result = TypeVar("_Result")
Asked: TypeAlias = "asyncio.Future[_Result] | concurrent.futures.Future[_Result]"

_THREADS = 8

# The loop's default executor is the program's: behind its long jobs a place would be given back late. In a
# child made by fork there are no threads of its parent's.
_own: list[concurrent.futures.ThreadPoolExecutor] = []
os.register_at_fork(after_in_child=_own.clear)


def start(operation: Callable[..., _Result], *arguments: object) -> "concurrent.futures.Future[_Result]":
    """Begin an operation that waits for a network; the interpreter ends no earlier than it does."""
    if not _own:
        _own.append(concurrent.futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="mirab"))
    return _own[0].submit(contextvars.copy_context().run, operation, *arguments)


def start_surely(
    operation: Callable[..., _Result], *arguments: object
) -> "concurrent.futures.Future[_Result]":
    """Begin an operation that may be done twice; without a thread it is done here and now."""
    try:
        return start(operation, *arguments)
    except RuntimeError:  # the interpreter ends, or can have no more threads
        done: concurrent.futures.Future[_Result] = concurrent.futures.Future()
        try:
            done.set_result(operation(*arguments))
        except Exception as error:  # noqa: BLE001 - who waits is told
            done.set_exception(error)
        return done


async def answer_of(asked: "Asked[_Result]", late: "Callable[[Asked[_Result]], object]") -> _Result:
    """Wait for an answer. When the task is cancelled, what was asked goes on, and `late` has its answer."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[_Result] = loop.create_future()

    def tell() -> None:
        if told.cancelled():
            late(asked)
        elif error := asked.exception():
            # A future takes every exception but this one.
            told.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)
        else:
            told.set_result(asked.result())

    def tell_from_a_thread(_: object) -> None:
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:  # the loop is closed
            late(asked)

    if isinstance(asked, concurrent.futures.Future):
        asked.add_done_callback(tell_from_a_thread)
    else:
        asked.add_done_callback(lambda _: tell())
    try:
        return await told
    except asyncio.CancelledError:
        if told.done() and not told.cancelled():  # it was cancelled between the answer and its turn
            told.exception()
            late(asked)
        elif isinstance(asked, asyncio.Future):
            _keep_the_loop(asked)
        raise


def _keep_the_loop(asked: "asyncio.Future[_Result]") -> None:
    """Have a loop that ends wait for an answer, as `asyncio.run` does only for asynchronous generators."""

    async def lasts() -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if not asked.done():
                await asyncio.wait([asked])

    generator = lasts()

    def go_on() -> None:
        with suppress(StopIteration, StopAsyncIteration, RuntimeError):
            generator.asend(None).send(None)

    go_on()
    asked.add_done_callback(lambda _: go_on())


def give_back(limiter: Limiter, decision: Decision) -> None:
    """Release the places of a decision that nobody has; nobody waits for it."""
    if not decision:
        return
    if decides_here(limiter):
        _release(limiter, decision)
    else:
        start_surely(_release, limiter, decision)


def _release(limiter: Limiter, decision: Decision) -> None:
    try:
        limiter.release(decision)
    except Exception as error:  # noqa: BLE001 - whoever asked is gone
        could_not_be_given_back(error)


def could_not_be_given_back(error: BaseException) -> None:
    """Log that a place is lost for a while."""
    logger.warning("a place could not be given back and is taken until it expires: %s", error)
