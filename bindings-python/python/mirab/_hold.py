"""`Limiter.hold` and `Limiter.limit`, loaded when one of them is first called: few programs call them."""

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mirab._mirab import Decision, InvalidArgument, Limiter, MirabError, Unsupported
from mirab._refused import Refused

if TYPE_CHECKING:
    from datetime import timedelta

logger = logging.getLogger("mirab")

Function = TypeVar("Function", bound=Callable[..., Any])


@contextmanager
def hold(
    limiter: Limiter, key: str | bytes, cost: int = 1, *, max_wait: "float | timedelta | None" = None
) -> Iterator[Decision]:
    """Take `cost` units of `key` for a `with` block, or raise Refused."""
    decision = limiter.acquire(key, cost) if max_wait is None else limiter.wait(key, cost, max_wait)
    if not decision:
        raise Refused(decision)
    try:
        yield decision
    except BaseException:
        try:
            limiter.release(decision)
        except MirabError as error:  # the block's own exception says more
            logger.warning("a place could not be given back and is taken until it expires: %s", error)
        raise
    limiter.release(decision)


def limit(
    limiter: Limiter,
    *,
    key: str | bytes | Callable[..., str | bytes],
    cost: int | Callable[..., int] = 1,
    max_wait: "float | timedelta | None" = None,
) -> Callable[[Function], Function]:
    """Return a decorator whose function runs under `hold`, and raises Refused when it may not."""

    def decorate(function: Function) -> Function:
        _refuse_undecoratable(function)

        @functools.wraps(function)
        def limited(*args: Any, **kwargs: Any) -> Any:
            whose = key(*args, **kwargs) if callable(key) else key
            units = cost(*args, **kwargs) if callable(cost) else cost
            with limiter.hold(whose, units, max_wait=max_wait):
                return function(*args, **kwargs)

        return cast("Function", limited)

    return decorate


def _refuse_undecoratable(function: object) -> None:
    if not callable(function) or isinstance(function, type):
        raise InvalidArgument(f"{function!r} cannot be decorated: it must be a function")
    for lasts in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        if lasts(function):
            raise Unsupported(f"{function!r} goes on after its call: use `with limiter.hold(...)` inside it")
