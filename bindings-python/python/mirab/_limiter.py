"""`Limiter`: the native one, and its decorator and context manager."""

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

from mirab import _mirab
from mirab._mirab import Decision, InvalidArgument, MirabError, Unsupported
from mirab._refused import Refused

logger = logging.getLogger("mirab")

Function = TypeVar("Function", bound=Callable[..., Any])


class Limiter(_mirab.Limiter):
    """A policy on a store. It may be shared by threads, and used in a forked child.

    A limiter is a context manager that closes itself.
    """

    __slots__ = ()

    @contextmanager
    def hold(
        self, key: str | bytes, cost: int = 1, *, max_wait: float | timedelta | None = None
    ) -> Iterator[Decision]:
        """Take `cost` units of `key` for a `with` block, or raise Refused.

            with limiter.hold("reports") as decision: ...

        At its end, also by an exception, what it holds of `concurrency` limits is released; what it took
        of others stays charged, unless the block settles it: `refund(decision)`, `commit(decision, actual)`.

        max_wait: seconds or a timedelta to `wait` for admission, a leaky bucket's turn included; without,
            it asks once and doesn't sleep, and a leaky bucket's `decision.delay` is the block's to sleep.
        """
        decision = self.acquire(key, cost) if max_wait is None else self.wait(key, cost, max_wait)
        if not decision:
            raise Refused(decision)
        try:
            yield decision
        except BaseException:
            try:
                self.release(decision)
            except MirabError as error:  # the block's own exception says more
                logger.warning("a place could not be given back and is taken until it expires: %s", error)
            raise
        self.release(decision)

    def limit(
        self,
        *,
        key: str | bytes | Callable[..., str | bytes],
        cost: int | Callable[..., int] = 1,
        max_wait: float | timedelta | None = None,
    ) -> Callable[[Function], Function]:
        """Return a decorator whose function runs under `hold`, and raises Refused when it may not.

            @limiter.limit(key="reports")
            def make_report(): ...

        key, cost: values, or functions of the call's arguments.
        max_wait: as in `hold`.

        A coroutine or generator function is Unsupported: its call ends before its work. Use `hold` inside.
        """

        def decorate(function: Function) -> Function:
            _refuse_undecoratable(function)

            @functools.wraps(function)
            def limited(*args: Any, **kwargs: Any) -> Any:
                whose = key(*args, **kwargs) if callable(key) else key
                units = cost(*args, **kwargs) if callable(cost) else cost
                with self.hold(whose, units, max_wait=max_wait):
                    return function(*args, **kwargs)

            return cast("Function", limited)

        return decorate


def _refuse_undecoratable(function: object) -> None:
    if not callable(function) or isinstance(function, type):
        raise InvalidArgument(f"{function!r} cannot be decorated: it must be a function")
    for lasts in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        if lasts(function):
            raise Unsupported(f"{function!r} goes on after its call: use `with limiter.hold(...)` inside it")


Limiter.__module__ = "mirab"
