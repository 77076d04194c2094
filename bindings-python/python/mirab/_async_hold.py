"""`AsyncLimiter.hold` and `AsyncLimiter.limit`."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, cast

from mirab._aside import could_not_be_given_back
from mirab._mirab import Decision, InvalidArgument, MirabError, Unsupported
from mirab._refused import Refused

if TYPE_CHECKING:
    from datetime import timedelta

    from mirab._async import AsyncLimiter

_Function = TypeVar("_Function", bound=Callable[..., Any])


@asynccontextmanager
async def hold(
    limiter: "AsyncLimiter",
    key: str | bytes,
    cost: SupportsIndex = 1,
    *,
    max_wait: "float | timedelta | None" = None,
) -> AsyncIterator[Decision]:
    """Take `cost` units of `key` for an `async with` block, or raise Refused."""
    if max_wait is None:
        decision = await limiter.acquire(key, cost)
    else:
        decision = await limiter.wait(key, cost, max_wait)
    if not decision:
        raise Refused(decision)
    try:
        yield decision
    except BaseException:
        try:
            await limiter.release(decision)
        except MirabError as error:  # the block's own exception says more
            could_not_be_given_back(error)
        raise
    await limiter.release(decision)


def limit(
    limiter: "AsyncLimiter",
    *,
    key: str | bytes | Callable[..., str | bytes],
    cost: SupportsIndex | Callable[..., SupportsIndex],
    max_wait: "float | timedelta | None",
) -> Callable[[_Function], _Function]:
    """Return a decorator whose coroutine function runs under `hold`."""

    def decorate(function: _Function) -> _Function:
        if not callable(function) or isinstance(function, type):
            raise InvalidArgument(f"{function!r} cannot be decorated: it must be a coroutine function")
        if not inspect.iscoroutinefunction(function):
            raise Unsupported(
                f"{function!r} is no coroutine function: decorate it with the `limit` of a Limiter, or use "
                "`async with limiter.hold(...)` inside it"
            )

        @functools.wraps(function)
        async def limited(*args: Any, **kwargs: Any) -> Any:
            whose = key(*args, **kwargs) if callable(key) else key
            units = cost(*args, **kwargs) if callable(cost) else cost
            async with limiter.hold(whose, units, max_wait=max_wait):
                return await function(*args, **kwargs)

        return cast("_Function", limited)

    return decorate
