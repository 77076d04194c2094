"""The options of `mirab.flask.Limiter`: its arguments, else the app's `RATELIMIT_` config."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from flask import Flask

from mirab import _flask_check as check
from mirab._flask_answer import Told
from mirab._flask_hold import logger
from mirab._flask_rule import FIXED_WINDOW, KeyFunc, OnBreach, Rule, check_strategy
from mirab._mirab import (
    InvalidArgument,
    Limit,
    Limiter,
    ManualClock,
    Store,
    StoreCorrupt,
    StoreDenied,
    StoreFull,
    StoreMismatch,
    StoreTimeout,
    StoreUnavailable,
    Unsupported,
)

STORE_FAILURES = (StoreUnavailable, StoreTimeout, StoreDenied, StoreFull, StoreCorrupt, StoreMismatch)

CONFIG = {
    "application_limits": "RATELIMIT_APPLICATION",
    "application_limits_deduct_when": "RATELIMIT_APPLICATION_DEDUCT_WHEN",
    "default_limits": "RATELIMIT_DEFAULT",
    "default_limits_deduct_when": "RATELIMIT_DEFAULTS_DEDUCT_WHEN",
    "enabled": "RATELIMIT_ENABLED",
    "headers_enabled": "RATELIMIT_HEADERS_ENABLED",
    "key_prefix": "RATELIMIT_KEY_PREFIX",
    "on_breach": "RATELIMIT_ON_BREACH_CALLBACK",
    "retry_after": "RATELIMIT_HEADER_RETRY_AFTER_VALUE",
    "storage_options": "RATELIMIT_STORAGE_OPTIONS",
    "storage_uri": "RATELIMIT_STORAGE_URI",
    "strategy": "RATELIMIT_STRATEGY",
    "swallow_errors": "RATELIMIT_SWALLOW_ERRORS",
}

UNSUPPORTED = frozenset(
    {
        "application_limits_cost",
        "application_limits_exempt_when",
        "application_limits_per_method",
        "default_limits_cost",
        "default_limits_exempt_when",
        "default_limits_per_method",
        "fail_on_first_breach",
        "header_name_mapping",
        "in_memory_fallback",
        "in_memory_fallback_enabled",
        "meta_limits",
        "on_meta_breach",
        "request_identifier",
    }
)
"""Flask-Limiter's arguments that this release does not have."""

_SECONDS = {"socket_timeout": "timeout_ms", "socket_connect_timeout": "connect_timeout_ms"}
_PARAMETERS = ("prefix", "timeout_ms", "connect_timeout_ms", "pool")


def refuse_unknown(call: str, others: Mapping[str, object]) -> None:
    """Say of every argument that was not expected why it cannot be had."""
    for name in others:
        if name in UNSUPPORTED:
            raise Unsupported(f"{call}: {name} is one of Flask-Limiter's arguments, but not in this release")
        raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "application_limits": check.limits,
    "application_limits_deduct_when": check.function,
    "default_limits": check.limits,
    "default_limits_deduct_when": check.function,
    "headers_enabled": check.flag,
    "key_func": check.function,
    "key_prefix": check.text,
    "max_hold": check.seconds,
    "on_breach": check.function,
    "retry_after": check.text,
    "storage_options": check.storage_options,
    "storage_uri": check.storage_uri,
    "strategy": check_strategy,
    "swallow_errors": check.flag,
}


def check_given(given: Mapping[str, Any]) -> None:
    """Refuse what cannot be right among the arguments; None is left to the config."""
    for name, checked in _CHECKS.items():
        if given[name] is not None or name in ("key_func", "max_hold"):
            checked(name, given[name])
    core = ("clock", "on_store_failure", "instances")
    Limiter(Limit.unlimited(), **{name: given[name] for name in core})


@dataclass
class Settings:
    """The options as they hold for one app, and the limiters that its requests have needed."""

    application: tuple[Rule, ...]
    defaults: tuple[Rule, ...]
    headers_enabled: bool
    key_func: KeyFunc
    key_prefix: str
    on_breach: OnBreach | None
    store: Store
    strategy: str
    swallow_errors: bool
    clock: ManualClock | Callable[[], float] | None
    on_store_failure: str
    instances: int | None
    max_hold: float
    failing: bool = False
    warned_of_no_key: bool = False
    told_by: Told = field(init=False)
    _limiters: dict[tuple[Limit, ...], Limiter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make what depends on the rest."""
        self.told_by = Told(self.max_hold)

    @classmethod
    def of(cls, app: Flask, given: Mapping[str, Any]) -> "Settings":
        """Combine the arguments with the app's config; an argument comes first."""
        for key in app.config:
            if key.startswith("RATELIMIT_") and key not in CONFIG.values():
                raise Unsupported(f"{key} is not in this release; these are: {', '.join(CONFIG.values())}")

        def option(name: str, default: Any = None) -> Any:
            value = given[name]
            if value is not None:
                return value
            value = app.config.get(CONFIG[name])
            return default if value is None else _CHECKS[name](CONFIG[name], value)

        if option("retry_after", "delta-seconds") != "delta-seconds":
            raise Unsupported('retry_after: "delta-seconds" is the only form in this release')

        def rules(name: str) -> tuple[Rule, ...]:
            deduct_when = option(f"{name}_deduct_when")
            values = check.limits(name, option(name, ()))
            return tuple(Rule(value, deduct_when=deduct_when) for value in values)

        settings = cls(
            application=rules("application_limits"),
            defaults=rules("default_limits"),
            headers_enabled=option("headers_enabled", default=False),
            key_func=given["key_func"],
            key_prefix=option("key_prefix", ""),
            on_breach=option("on_breach"),
            store=Store(_uri(option("storage_uri", "memory:"), option("storage_options", {}))),
            strategy=option("strategy", FIXED_WINDOW),
            swallow_errors=option("swallow_errors", default=False),
            clock=given["clock"],
            on_store_failure=given["on_store_failure"],
            instances=given["instances"],
            max_hold=given["max_hold"],
        )
        settings.limiter((settings.scoped(Limit.unlimited(), ""),))  # what is bad is an error now
        return settings

    def scoped(self, limit: Limit, scope: str) -> Limit:
        """Return the limit with the buckets of its scope; one with a name is the same on all routes."""
        if limit.name != str(limit):
            scope = ""
        if self.key_prefix:
            scope = f"{self.key_prefix}/{scope}"
        return limit.with_scope(scope) if scope else limit

    def limiter(self, limits: tuple[Limit, ...]) -> Limiter:
        """Return what decides these limits together."""
        limiter = self._limiters.get(limits)
        if limiter is None:
            limiter = Limiter(
                limits,
                self.store,
                clock=self.clock,
                on_store_failure=self.on_store_failure,
                instances=self.instances,
            )
            if len(self._limiters) >= _MOST_LIMITERS:  # limits that a callable makes may be many
                self._limiters.clear()
            self._limiters[limits] = limiter
        return limiter

    def now(self) -> float:
        """Seconds since 1970, on the clock that decides."""
        if isinstance(self.clock, ManualClock):
            return self.clock.now_us / 1e6
        return time.time() if self.clock is None else self.clock()

    def store_failed(self, error: Exception) -> None:
        """Log the first failure of an outage whose requests pass."""
        if not self.failing:
            logger.error("the store failed, requests pass without a limit: %s", error)
        self.failing = True

    def store_answered(self) -> None:
        """Log the end of an outage."""
        if self.failing:
            logger.warning("the store answers again, requests are limited")
        self.failing = False

    def without_key(self, told: str | bytes | None, shared: str) -> None:
        """Log the first request that has no key."""
        if not self.warned_of_no_key:
            logger.warning("a key function returned %r: such requests share %r", told, shared)
        self.warned_of_no_key = True


_MOST_LIMITERS = 4096


def _uri(uri: str, options: Mapping[str, object]) -> str:
    """Write the options into the URI, whose own parameters come first."""
    present = parse_qs(uri.partition("?")[2])
    parameters: dict[str, object] = {}
    for name, value in options.items():
        if name in _SECONDS:
            parameters[_SECONDS[name]] = max(
                1, round(check.seconds(f"storage_options: {name}", value) * 1000)
            )
        elif name in _PARAMETERS:
            if not isinstance(value, (str, int, float)) or isinstance(value, bool):
                raise check.wrong(f"storage_options: {name}", value, "text or a number")
            parameters[name] = check.text(f"storage_options: {name}", str(value))
        else:
            allowed = ", ".join((*_PARAMETERS, *_SECONDS))
            raise InvalidArgument(f"storage_options: {name!r} is not one of {allowed}")
    missing = {name: value for name, value in parameters.items() if name not in present}
    if not missing:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(missing)}"
