"""What lasts longer than a decision: a request that waits for its turn, and a place that it takes."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from mirab._mirab import Decision, InvalidArgument, Limit, Limiter, ManualClock

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

logger = logging.getLogger("mirab")


def check_max_hold(seconds: float) -> float:
    """Return the longest that a request may be held, or say why it cannot be."""
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds < math.inf:
        raise InvalidArgument(f"max_hold {seconds!r}: it must be a number of seconds, 0 or more")
    return seconds


def check_holds(limits: Iterable[Limit], max_hold: float) -> None:
    """Refuse a limit that could hold a request for longer.

    Such a request would have to be refused after it was charged.
    """
    for limit in limits:
        longest = _longest_delay(limit)
        if longest > max_hold:
            raise InvalidArgument(
                f"limit {str(limit)!r}: the last of its queue is held {longest} seconds, and max_hold is "
                f"{max_hold}: shorten the queue or raise max_hold"
            )


def hold(seconds: float, clock: ManualClock | Callable[[], float] | None) -> None:
    """Let a request wait for its turn; a manual clock is moved on instead."""
    if seconds <= 0:
        return
    if isinstance(clock, ManualClock):
        clock.advance(seconds)
    else:
        time.sleep(seconds)


@lru_cache(maxsize=1024)
def _longest_delay(limit: Limit) -> float:
    """How long the last of its queue waits, as a limiter says whose other places are all taken."""
    limiter = Limiter(limit, clock=ManualClock())
    limiter.acquire("k", max(limit.capacity - 1, 0))
    return limiter.peek("k").delay


@lru_cache(maxsize=1024)
def takes_places(limit: Limit) -> bool:
    """Whether what it admits is to be released."""
    limiter = Limiter(limit, clock=ManualClock())
    return limiter.release(limiter.acquire("k")) > 0


class Places:
    """What one request holds of `concurrency` limits, until its response is done."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._held: list[tuple[Limiter, Decision]] = []
        self._ended = False

    def __bool__(self) -> bool:
        """Whether it holds any."""
        return bool(self._held)

    def add(self, limiter: Limiter, decision: Decision) -> None:
        """Hold what `decision` took."""
        self._held.append((limiter, decision))
        if self._ended:  # a thread of the request's that goes on after its response
            self.end()

    def end(self) -> None:
        """Give them all back; where that fails they are taken until they expire."""
        self._ended = True
        while self._held:
            limiter, decision = self._held.pop()
            try:
                limiter.release(decision)
            except Exception as error:  # noqa: BLE001 - the response is out, and the other places are due
                logger.warning("a place could not be given back and is taken until it expires: %s", error)


class EndsPlaces:
    """WSGI middleware: the places of a request end with its response.

    That is when the server closes the body: sent, broken off by an error, or left by the client. A
    hook of Flask's would be too early for a body that streams, and is passed by for one from a file.
    """

    def __init__(self, app: "WSGIApplication", slot: str) -> None:
        """Stand in front of `app`, with the places of each request in `environ[slot]`."""
        self._app = app
        self._slot = slot

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request."""
        places = environ[self._slot] = Places()
        try:
            body = self._app(environ, start_response)
            if not places and _is_file(body, environ):
                return body
            return _Body(body, places)
        except BaseException:
            places.end()
            raise


def _is_file(body: Iterable[bytes], environ: "WSGIEnvironment") -> bool:
    """Whether the server sends the body by itself, which it only does when nothing is wrapped around."""
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(wrapper, type) and isinstance(body, wrapper)


class _Body:
    """A response's body that ends the places when it is closed."""

    def __init__(self, body: Iterable[bytes], places: Places) -> None:
        self._body = body
        self._places = places
        self._next: Callable[[], bytes] = partial(next, iter(body))

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return self._next()

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close:
                close()
        finally:
            self._places.end()
