"""What lasts longer than a decision: a request that waits for its turn, and what it holds meanwhile."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from mirab._mirab import Decision, Limiter, ManualClock

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from mirab._flask_answer import Answer

logger = logging.getLogger("mirab")


def hold(seconds: float, clock: ManualClock | Callable[[], float] | None) -> None:
    """Let a request wait for its turn; a manual clock is moved on instead."""
    if seconds <= 0:
        return
    if isinstance(clock, ManualClock):
        clock.advance(seconds)
    else:
        time.sleep(seconds)


def give_back(limiter: Limiter, decision: Decision) -> None:
    """Give back what a request took that doesn't count; where that fails it stays charged."""
    try:
        limiter.refund(decision)
    except Exception as error:  # noqa: BLE001 - the request has its answer, and the others are due
        logger.warning("a request that doesn't count stays counted: %s", error)


class Held:
    """What one request holds: places until its response is done, and what the response decides about."""

    def __init__(self, *, ends: bool = True) -> None:
        """Hold nothing; `ends` says whether anybody will see the end of the response."""
        self.ends = ends
        self.pending: list[Answer] = []
        """Answers that a response will count or not; without one they are given back."""
        self._places: list[tuple[Limiter, Decision]] = []
        self._ended = False

    def __bool__(self) -> bool:
        """Whether it holds any places."""
        return bool(self._places)

    def add(self, limiter: Limiter, decision: Decision) -> None:
        """Hold the places that `decision` took."""
        self._places.append((limiter, decision))
        if self._ended:  # a thread of the request's that goes on after its response
            self.end()

    def end(self) -> None:
        """Give everything back; places where that fails are taken until they expire."""
        self._ended = True
        while self.pending:
            answer = self.pending.pop()
            give_back(answer.limiter, answer.decision)
        while self._places:
            limiter, decision = self._places.pop()
            try:
                limiter.release(decision)
            except Exception as error:  # noqa: BLE001 - the response is out, and the other places are due
                logger.warning("a place could not be given back and is taken until it expires: %s", error)


class EndsHeld:
    """WSGI middleware: what a request holds ends with its response.

    That is when the server closes the body: sent, broken off by an error, or left by the client. A
    hook of Flask's would be too early for a body that streams, and is passed by for one from a file.
    """

    def __init__(self, app: "WSGIApplication", slot: str) -> None:
        """Stand in front of `app`, with what each request holds in `environ[slot]`."""
        self._app = app
        self._slot = slot

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request."""
        held = environ[self._slot] = Held()
        try:
            body = self._app(environ, start_response)
            if not held and _is_file(body, environ):
                return body
            return _Body(body, held)
        except BaseException:
            held.end()
            raise


def _is_file(body: Iterable[bytes], environ: "WSGIEnvironment") -> bool:
    """Whether the server sends the body by itself, which it only does when nothing is wrapped around."""
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(wrapper, type) and isinstance(body, wrapper)


class _Body:
    """A response's body that ends what is held when it is closed."""

    def __init__(self, body: Iterable[bytes], held: Held) -> None:
        self._body = body
        self._held = held
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
            self._held.end()
