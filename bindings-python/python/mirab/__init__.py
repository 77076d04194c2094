"""A rate limiter that is exact, shared between processes and languages, and fast.

    from mirab import Limiter

    limiter = Limiter("100/second burst 300")
    if limiter.allow("user:42"):
        ...

Limits that name the same store, the same limit and the same key share a bucket, whatever the
language of the process. `AsyncLimiter` is the same for asyncio, and `mirab.flask` puts limits in front
of a Flask app.
"""

from mirab._mirab import (
    Closed,
    Decision,
    Health,
    Internal,
    InvalidArgument,
    InvalidLimit,
    InvalidRules,
    InvalidUri,
    Limit,
    Limiter,
    ManualClock,
    MirabError,
    Standing,
    Stats,
    Store,
    StoreCorrupt,
    StoreDenied,
    StoreFull,
    StoreMismatch,
    StoreTimeout,
    StoreUnavailable,
    Unsupported,
    __version__,
)
from mirab._refused import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mirab._async import AsyncLimiter

__all__ = [
    "AsyncLimiter",
    "Closed",
    "Decision",
    "Health",
    "Internal",
    "InvalidArgument",
    "InvalidLimit",
    "InvalidRules",
    "InvalidUri",
    "Limit",
    "Limiter",
    "ManualClock",
    "MirabError",
    "Refused",
    "Standing",
    "Stats",
    "Store",
    "StoreCorrupt",
    "StoreDenied",
    "StoreFull",
    "StoreMismatch",
    "StoreTimeout",
    "StoreUnavailable",
    "Unsupported",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Load what few programs need when it is first asked for."""
    if name != "AsyncLimiter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mirab import _async  # noqa: PLC0415 - it loads asyncio

    globals()[name] = _async.AsyncLimiter
    return _async.AsyncLimiter


def __dir__() -> list[str]:
    """Name what is there, loaded or not."""
    return sorted({*globals(), *__all__})
