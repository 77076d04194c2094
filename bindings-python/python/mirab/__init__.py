"""A rate limiter that is exact, shared between processes and languages, and fast.

    from mirab import Limiter

    limiter = Limiter("100/second burst 300")
    if limiter.allow("user:42"):
        ...

Limits that name the same store, the same limit and the same key share a bucket, whatever the
language of the process. `mirab.flask` puts limits in front of a Flask app.
"""

from mirab._mirab import (
    Closed,
    Decision,
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

__all__ = [
    "Closed",
    "Decision",
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
