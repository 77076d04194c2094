"""The native half of the package `mirab`. Its names are meant to be imported from `mirab`."""

from asyncio import Future
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal, SupportsFloat, SupportsIndex, TypeVar, final, overload

from typing_extensions import Self, disjoint_base

_Function = TypeVar("_Function", bound=Callable[..., Any])

__version__: str

ERRORS: dict[str, type[MirabError]]
"""The class of every error by the stable name of its kind."""

@disjoint_base
class Limiter:
    """A policy on a store. It may be shared by threads, and used in a forked child.

    A limiter is a context manager that closes itself.
    """

    def __new__(
        cls,
        limits: str | Limit | Sequence[str | Limit],
        store: str | Store = "memory:",
        *,
        clock: ManualClock | Callable[[], float] | None = None,
        on_store_failure: str = "local",
        instances: SupportsIndex | None = None,
    ) -> Self:
        """Make a limiter of `limits` on `store`; opens no socket and starts no thread.

        limits: notation such as "100/second burst 300", a Limit, or a list of them.
        store: a URI ("memory:", "memory:NAME", "shm:NAME", "redis://...") or a Store. "shm:NAME" is one for
            all processes of this host and user: what several workers of one host should use.
        clock: None for the store's own; a ManualClock; or a callable that returns the seconds since
            1970. Without one, MIRAB_CLOCK=host in the environment chooses `time.time`.
        on_store_failure: what decides when the store does not: "local", the same limits in this process, on
            Redis each bucket from where this process last saw it; "open" admits all; "closed" refuses all;
            "raise" raises the Store... error. But for the last, such a decision is `degraded`.
        instances: how many processes share the store, 1 unless given: under "local" each admits that part of
            the limits by itself.

        Raises InvalidLimit, InvalidUri, InvalidArgument or Unsupported; where the file of "shm:" can't be
        used, StoreUnavailable, StoreDenied, StoreCorrupt or StoreMismatch.
        """

    def acquire(self, key: str | bytes, cost: SupportsIndex = 1) -> Decision:
        """Take `cost` units of `key` if they are there; the Decision is true when they were.

        key: 1 to 65536 bytes; text is its UTF-8.
        cost: 0 to 2**53 units; 0 always passes and writes nothing; above the capacity is never.

        Raises InvalidArgument for such a key or cost, Closed, and Store... when the store fails.
        """

    def allow(self, key: str | bytes, cost: SupportsIndex = 1) -> bool:
        """Like `acquire`, but answer only True or False; the fastest way to ask.

        What it takes of a `concurrency` limit cannot be released, and counts until it expires.
        """

    def peek(self, key: str | bytes, cost: SupportsIndex = 1) -> Decision:
        """Say whether `cost` would be admitted now, and what is left before taking it; take nothing."""

    def acquire_many(
        self, items: Iterable[str | bytes | tuple[str | bytes, SupportsIndex]]
    ) -> list[Decision]:
        """Acquire for several keys in one step; return their decisions, in the same order.

        items: keys, or (key, cost) pairs. Each is all or nothing for itself; the same key twice counts
            twice.

        Raises as `acquire`; a bad item is named by its index ("item 3: ..."), and nothing is taken.
        """

    def wait(
        self, key: str | bytes, cost: SupportsIndex = 1, timeout: float | timedelta | None = None
    ) -> Decision:
        """Sleep until `cost` units are admitted, and return the last decision; a refusal is never raised.

        It returns at once when no wait would help, or when `retry_after` lies beyond the timeout. A leaky
        bucket's `delay` is slept too, where it is within the timeout. No order among those who wait is
        promised. A ManualClock is advanced instead. What is admitted when Ctrl-C ends it stays charged.

        timeout: seconds or a timedelta; 0 asks once, None waits for ever.

        Raises as `acquire`, and Closed when the limiter is closed meanwhile.
        """

    def refund(self, decision: Decision) -> int:
        """Give back what `decision` took, never above full, and end its leases.

        Return the units given back, of several limits the most. It works once: 0 for a decision that was
        refused, settled before or expired. Of a leaky bucket only the last in the queue may leave, before
        its turn.

        Raises InvalidArgument for what is no Decision, Closed, and Store... when the store fails.
        """

    def commit(self, decision: Decision, actual_cost: SupportsIndex) -> None:
        """Settle `decision` at a cost that is known only afterwards.

        Less than it took is given back as by `refund`; more is charged now, whatever is left, at most to
        empty: debt beyond that is forgiven. It works once, and not for a refusal; leases go on.

        Raises InvalidArgument for a cost outside 0 to 2**53 or no Decision, Closed, and Store....
        """

    def release(self, decision: Decision) -> int:
        """End what `decision` holds of `concurrency` limits; what it took of others stays charged.

        Return how many of its leases counted until now: 0 for a decision that was refused, released
        before or expired, that holds none, or that is another limiter's.

        Raises InvalidArgument for what is no Decision, Closed, and Store... when the store fails.
        """

    def hold(
        self, key: str | bytes, cost: SupportsIndex = 1, *, max_wait: float | timedelta | None = None
    ) -> AbstractContextManager[Decision]:
        """Take `cost` units of `key` for a `with` block, or raise Refused.

            with limiter.hold("reports") as decision: ...

        At its end, also by an exception, what it holds of `concurrency` limits is released; what it took
        of others stays charged, unless the block settles it: `refund(decision)`, `commit(decision, actual)`.

        max_wait: seconds or a timedelta to `wait` for admission, a leaky bucket's turn included; without, or
            with 0, it asks once and doesn't sleep, and a leaky bucket's `decision.delay` is the block's to
            sleep.
        """

    def limit(
        self,
        *,
        key: str | bytes | Callable[..., str | bytes],
        cost: SupportsIndex | Callable[..., SupportsIndex] = 1,
        max_wait: float | timedelta | None = None,
    ) -> Callable[[_Function], _Function]:
        """Return a decorator whose function runs under `hold`, and raises Refused when it may not.

            @limiter.limit(key="reports")
            def make_report(): ...

        key, cost: values, or functions of the call's arguments.
        max_wait: as in `hold`.

        A coroutine or generator function is Unsupported: its call ends before its work. Use `hold` inside.
        """

    def block(self, key: str | bytes, seconds: float | timedelta) -> None:
        """Refuse `key` for so long, under any limits of this store and prefix, also at cost 0.

        A later block replaces it; `unblock` and `reset` lift it.

        Raises InvalidArgument for less than a microsecond or more than 2**50 (35 years).
        """

    def unblock(self, key: str | bytes) -> None:
        """Lift the block of `key`; none is fine."""

    def reset(self, key: str | bytes) -> None:
        """Forget what was used of `key`, and its block; an unknown key is fine."""

    def health(self) -> Health:
        """Return how its store is, asked now: where that is a server, in a few round trips.

        A store that is away is what it tells, and no error; raises only Closed.
        """

    def stats(self) -> Stats:
        """Return how often it answered what, since it was made."""

    def close(self) -> None:
        """End it: afterwards, and for those who wait inside, every operation raises Closed.

        Twice is fine.
        """

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of its policy."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Limit:
    """An algorithm with its numbers. Limits are values: equal when they say the same.

    `str(limit)` is its canonical notation, the same in every language.
    """

    @staticmethod
    def parse(text: str) -> Limit:
        """Read the one limit that `text` says, such as "5/minute"; raises InvalidLimit."""

    @overload
    @staticmethod
    def token_bucket(
        limit: SupportsIndex,
        per: float | timedelta,
        capacity: SupportsIndex | None = None,
        *,
        refill_rate: None = None,
        name: str | None = None,
    ) -> Limit:
        """Make a bucket that fills at `limit` units in `per` seconds, up to `capacity` (else `limit`)."""

    @overload
    @staticmethod
    def token_bucket(
        limit: None = None,
        per: None = None,
        *,
        capacity: SupportsIndex,
        refill_rate: float | Fraction | Decimal | str,
        name: str | None = None,
    ) -> Limit:
        """Make a bucket of `capacity` that fills at `refill_rate` units a second.

        An int, Fraction, Decimal or text is taken exactly, a float by its shortest decimal text.
        """

    @staticmethod
    def fixed_window(
        limit: SupportsIndex,
        per: float | timedelta,
        anchor: Literal["clock", "first"] = "clock",
        *,
        name: str | None = None,
    ) -> Limit:
        """Admit at most `limit` units in each window of `per` seconds.

        Windows are aligned to the clock, or with anchor "first" begin at the first admitted request.
        """

    @staticmethod
    def leaky_bucket(
        limit: SupportsIndex, per: float | timedelta, queue: SupportsIndex = 0, *, name: str | None = None
    ) -> Limit:
        """Let admitted requests leave at `limit` in `per` seconds: each is told its `delay`.

        At most `queue` units, 0 to 2**32-2, wait besides the one being served; a full queue refuses.
        """

    @staticmethod
    def sliding_window(limit: SupportsIndex, per: float | timedelta, *, name: str | None = None) -> Limit:
        """Admit at most `limit` units in `per` seconds, weighting the window before.

        That one counts by the share of it that the last `per` seconds still cover. Windows are
        aligned to the clock.
        """

    @staticmethod
    def sliding_log(
        limit: SupportsIndex,
        per: float | timedelta,
        buckets: SupportsIndex | None = None,
        *,
        name: str | None = None,
    ) -> Limit:
        """Admit never more than `limit` units in any `per` seconds.

        It remembers each admitted request; with `buckets`, 1 to 1024 that divide the period, it keeps
        so many counters instead, and a refusal may last a bucket's width longer.
        """

    @staticmethod
    def concurrency(limit: SupportsIndex, expires: float | timedelta, *, name: str | None = None) -> Limit:
        """Admit at most `limit` units in flight.

        What was taken counts until `Limiter.release`, or until it expires after `expires` seconds.
        """

    @staticmethod
    def deny() -> Limit:
        """Refuse everything, for ever."""

    @staticmethod
    def unlimited() -> Limit:
        """Admit everything."""

    def with_name(self, name: str) -> Limit:
        """Return the same limit under a name: its bucket then keeps what was used when its numbers change."""

    def with_scope(self, scope: str) -> Limit:
        """Return the same limit with buckets of its own: those of `scope`, such as a route's."""

    @property
    def name(self) -> str:
        """Its name, else its notation."""

    @property
    def capacity(self) -> int:
        """How many units it holds when nothing is in use."""

    @property
    def period(self) -> float | None:
        """The seconds in which it grants its count, or after which a lease expires; else None."""

    @property
    def longest_delay(self) -> float:
        """Seconds that the last of a leaky bucket's queue is held; 0 for every other limit."""

    @property
    def is_concurrency(self) -> bool:
        """Whether it counts what is in flight, so that what it admits is to be released."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Decision:
    """The answer to one request. It is true exactly when the request is allowed.

    Durations are seconds, rounded up to a microsecond.
    """

    @property
    def allowed(self) -> bool:
        """Whether the request may pass."""

    @property
    def limit(self) -> int:
        """The capacity of the limit that decided."""

    @property
    def used(self) -> int:
        """Units in use: after an admission with its cost, on a refusal without."""

    @property
    def remaining(self) -> int:
        """Units left, never negative."""

    @property
    def retry_after(self) -> float | None:
        """Seconds until the same cost is admitted if nobody else comes; None when allowed or never."""

    @property
    def reset_after(self) -> float:
        """Seconds until nothing is in use."""

    @property
    def delay(self) -> float:
        """Seconds for which an admitted request should be held until its turn (leaky bucket), else 0."""

    @property
    def limit_name(self) -> str:
        """The name of the limit that decided: its own, else its notation."""

    @property
    def limit_index(self) -> int | None:
        """The place of the limit that decided in the policy, and in `standings`; None when blocked."""

    @property
    def blocked(self) -> bool:
        """Whether the key is blocked: then `limit_name` is "block", and `standings` hold only the block's."""

    @property
    def never(self) -> bool:
        """Whether no wait would help: the cost is above the capacity, or the limit is `deny`."""

    @property
    def degraded(self) -> bool:
        """Whether `on_store_failure` decided because the store could not."""

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Where each limit of the policy stands, in the policy's order."""

    def __bool__(self) -> bool: ...

@final
class Standing:
    """Where one limit of a policy stands."""

    @property
    def limit_name(self) -> str:
        """The name of the limit: its own, else its notation."""

    @property
    def limit(self) -> int:
        """Its capacity."""

    @property
    def used(self) -> int:
        """Units in use."""

    @property
    def remaining(self) -> int:
        """Units left, never negative."""

    @property
    def reset_after(self) -> float:
        """Seconds until nothing is in use."""

    @property
    def next_after(self) -> float | None:
        """Seconds until `remaining` grows by one; None when nothing is in use."""

@final
class Stats:
    """Counts of one limiter since it was made."""

    @property
    def allowed(self) -> int:
        """Requests that were admitted."""

    @property
    def refused(self) -> int:
        """Requests that were refused and may pass later."""

    @property
    def never(self) -> int:
        """Requests that were refused for ever: a cost above the capacity, or `deny`."""

    @property
    def blocked(self) -> int:
        """Requests that were refused because the key is blocked."""

    @property
    def errors(self) -> int:
        """Requests that were not decided: an error was returned."""

    @property
    def degraded(self) -> int:
        """Requests of the above that were decided in the store's place, since it failed."""

    @property
    def refunded(self) -> int:
        """Units that `refund` and `commit` gave back."""

    @property
    def keys(self) -> int:
        """Keys that the store keeps on this machine, of all its limiters; 0 on Redis."""

    @property
    def evicted(self) -> int:
        """Live keys that the store forgot, or refused, for want of room; 0 on Redis."""

@final
class Health:
    """How a store is: what an operator asks first."""

    @property
    def store(self) -> str:
        """The store, without user, password and parameters."""

    @property
    def ok(self) -> bool:
        """Whether it answered just now, and is asked."""

    @property
    def circuit(self) -> str:
        """Whether it is asked: "closed" while it is, "open" while it isn't, after failures.

        "trial" while one request tries it.
        """

    @property
    def opened(self) -> int:
        """How often it went from "closed" to "open"."""

    @property
    def last_error(self) -> tuple[str, str] | None:
        """What failed last, as its kind and its text; None when nothing has."""

    @property
    def last_error_age(self) -> float | None:
        """Seconds since that; None when nothing has failed."""

    @property
    def server_version(self) -> str | None:
        """The server's version; None where there is no server, and when it didn't say."""

    @property
    def maxmemory_policy(self) -> str | None:
        """What the server does when its memory is full; None when it didn't say."""

    @property
    def may_drop_keys(self) -> bool | None:
        """Whether the server has a limit of memory and would then drop the keys of limiters.

        That gives their owners all their room back. None when it didn't say: see the rights that it takes.
        """

    @property
    def clock_ahead(self) -> float | None:
        """Seconds that the server's clock is ahead of this process's, to half a round trip.

        Negative when it is behind, None when there is none or it didn't say.
        """

    @property
    def layout(self) -> int:
        """The number of the layout of the state that this release writes."""

@final
class Store:
    """Where the state lives, to be shared by limiters. Making one opens no socket; "shm:" opens its file."""

    def __new__(cls, uri: str) -> Self:
        """Name the store of a URI: "memory:", "memory:NAME", "shm:NAME", "redis://..."; raises InvalidUri.

        Of "shm:" the file is opened or made: StoreUnavailable, StoreDenied, StoreCorrupt or StoreMismatch.
        """

    @property
    def kind(self) -> str:
        """What it is: "memory", "shm" or "redis"."""

@final
class ManualClock:
    """A clock for tests, moved by hand. It may be shared by limiters and threads."""

    def __new__(cls, start_us: SupportsIndex = 0) -> Self:
        """Stand at `start_us` microseconds since 1970, from 0 to 2**52; else InvalidArgument."""

    def advance(self, seconds: float | timedelta) -> None:
        """Move forward by seconds, to the nearest microsecond.

        `advance(decision.retry_after)` lands exactly on the instant of admission.
        """

    def advance_us(self, n: SupportsIndex) -> None:
        """Move forward by whole microseconds."""

    def set_us(self, n: SupportsIndex) -> None:
        """Set the time in microseconds since 1970, backwards too."""

    @property
    def now_us(self) -> int:
        """The time it shows, in microseconds since 1970."""

def acquire_soon(limiter: Limiter, key: str | bytes, cost: SupportsIndex) -> Decision | Future[Decision]:
    """As `Limiter.acquire`: the Decision, or a future of the running loop that will have it."""

def allow_soon(limiter: Limiter, key: str | bytes, cost: SupportsIndex) -> bool | Future[bool]:
    """As `Limiter.allow`: True or False, or a future of the running loop that will be one of them."""

def peek_soon(limiter: Limiter, key: str | bytes, cost: SupportsIndex) -> Decision | Future[Decision]:
    """As `Limiter.peek`: the Decision, or a future of the running loop that will have it."""

def decides_here(limiter: Limiter) -> bool:
    """Whether a limiter decides in this process, so that no operation waits for a network."""

@final
class Waiter:
    """A request that waits, where its asking and its sleeping are an event loop's."""

    def __new__(
        cls, limiter: Limiter, key: str | bytes, cost: SupportsIndex, timeout: float | timedelta | None
    ) -> Self:
        """Begin to wait now, at most for `timeout`; None is for ever."""

    def pause(self, decision: Decision) -> float | None:
        """Return the seconds to sleep after `decision`; None when it is the answer.

        After the sleep it is the answer where it admitted, and is asked again where it refused.
        """

@final
class Clients:
    """Who is asking: the client's address, behind proxies that are trusted and no others.

    Without a trusted proxy the client is who has connected, whatever the request says. A trusted proxy tells
    for whom it asks, in one header that is read from the right: what stands to the left of the first address
    that is not trusted was written by that client himself, and nobody believes it.
    """

    def __new__(
        cls,
        trusted_proxies: Sequence[str] | int | None = None,
        *,
        header: str = "X-Forwarded-For",
        ipv6_prefix: int = 64,
    ) -> Self:
        """Trust these proxies.

        trusted_proxies: networks ("10.0.0.0/8", "2001:db8::7"), the names "loopback", "linklocal",
            "uniquelocal", "shared" and "unix", or the number of proxies, one behind the other, that nobody
            can go round.
        header: the one that the proxies write; "Forwarded" is read as RFC 7239 says, others as lists of
            addresses.
        ipv6_prefix: how many bits of an IPv6 address make a client, 1 to 128.

        Raises InvalidArgument for anything else.
        """

    @property
    def header(self) -> str | None:
        """The name of the header to hand over, in lower case; None where none is read."""

    def key(self, peer: str | None, lines: Iterable[str] | None = None) -> str | None:
        """Return the client's key: "192.0.2.7" or "2001:db8:1:2::/64"; None where nothing is known of him.

        peer: the address that has connected, None or empty for a socket file.
        lines: the header's values, one for each time that the request has it, in their order.
        """

@final
class Answers:
    """How decisions are told to clients: made once, used for each."""

    def __new__(
        cls,
        families: Sequence[
            Literal["draft-8", "draft-8-spaced", "draft-7", "draft-6", "x-ratelimit", "x-ratelimit-epoch"]
        ]
        | None = None,
        *,
        body: Literal["none", "problem", "json"] = "none",
        partition_salt: bytes | None = None,
        max_hold: SupportsFloat | None = None,
    ) -> Self:
        """Tell them so.

        families: of headers; "draft-8" (to 11) where none is given.
        body: what stands in a refusal; "problem" is application/problem+json.
        partition_salt: at least 16 secret bytes, the same in all processes; without them `pk` differs from
            one process to the next.
        max_hold: the longest that a request is held for a leaky bucket, in seconds; one that would be held
            longer is answered as refused.

        Raises InvalidArgument for anything else.
        """

    def answer(
        self,
        decision: Decision,
        *,
        policy_name: str | None = None,
        partition_key: str | bytes | None = None,
        unix_now: SupportsFloat | None = None,
    ) -> Answer:
        """Return the answer to a decision.

        policy_name: what the policy is called, instead of the limit's name.
        partition_key: the key whose salted hash becomes `pk`.
        unix_now: the seconds since 1970 from which "x-ratelimit-epoch" counts, else the decision's own.
        """

@final
class Answer:
    """What a client is told: to be sent where it refuses; else its headers go with the response."""

    @property
    def status(self) -> int:
        """200 where the request may pass, 429 where it may not, 503 where nobody could decide."""

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers, as (name, value) pairs, with the Content-Type of the body."""

    @property
    def body(self) -> str | None:
        """The body of a refusal, where one is wanted; else None."""

class MirabError(Exception):
    """The base of every error of mirab. A refusal is a decision, never an error."""

    kind: ClassVar[str]
    """The stable name of its kind, the same in every language."""

class InvalidLimit(MirabError, ValueError):
    """A limit or its notation is malformed, or its numbers lie outside the domain."""

class InvalidArgument(MirabError, ValueError):
    """A key, a cost, a time or an option is outside its domain."""

class InvalidUri(MirabError, ValueError):
    """A store's URI is malformed or has an unknown parameter."""

class InvalidRules(MirabError, ValueError):
    """A file or document of rules is malformed."""

class Unsupported(MirabError):
    """Well-formed, but this store or this release cannot do it."""

class Closed(MirabError):
    """The limiter was closed."""

class StoreUnavailable(MirabError, ConnectionError):
    """The store could not be reached, or is not ready to decide."""

class StoreTimeout(MirabError, TimeoutError):
    """The store did not answer within the deadline; the charge may have happened."""

class StoreDenied(MirabError, ConnectionError):
    """The store refused the credentials or the command, or its file is another user's."""

class StoreFull(MirabError):
    """The store has no room left."""

class StoreCorrupt(MirabError):
    """The stored value, or the file of shared memory, is not one of this library's."""

class StoreMismatch(MirabError):
    """The store was made with other parameters or another layout."""

class Internal(MirabError):
    """A fault of this library: please report it."""
