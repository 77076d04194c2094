"""Limits in front of a Flask app, under the names that Flask-Limiter's users know.

    limiter = Limiter(get_remote_address, app=app, default_limits=["50 per hour"])

    @app.get("/login")
    @limiter.limit("5/minute")
    def login(): ...

It is a subset of Flask-Limiter 4: an argument or a `RATELIMIT_` key that is not supported is an error.
A limit without an algorithm of its own is what `strategy` says: a fixed window from the first request
("fixed-window", the default), a sliding log ("moving-window"), a sliding window ("sliding-window-counter",
its windows aligned to the clock) or mirab's own "token-bucket". "sliding_log: 5/minute", "5/minute burst
10" and the like are taken as they are written.

Two algorithms last longer than a decision:

- "leaky_bucket: 50/second queue 20" holds a request until its turn (on a ManualClock it moves the clock
  on instead), at most `max_hold` seconds: one that would wait longer leaves the queue, with a 429.
- "concurrency: 20 for 30s" admits 20 at a time. A place ends with the response: when its body was sent,
  broken off by an error or left by the client, and at the latest when it expires. In a test, a client
  that doesn't close the response (or ask with `buffered=True`) keeps the place.

What differs from that library, each on purpose:

- A refused request is not counted against the limit that refuses it.
- The limits of a request (the app's, the route's, the defaults) with one key, cost and `deduct_when` are
  one atomic decision: when one refuses, none has counted the request. The others are decided one after
  the other, and when one refuses, the earlier ones give the request back; for a moment it was counted.
  Leaky buckets come last, since one only takes back the last of its queue, before its turn. The limits
  of a decorated function that is not the view are decided when it is called: what let the view run has
  then counted.
- `deduct_when` counts a request when it comes and gives it back when the response is not to be counted,
  so that requests at the same time don't all pass. Without a response (an error that leaves the app) it
  is given back. It is asked once, before the body is sent. A request that has left a leaky bucket's queue
  cannot be given back: that is an error; and a place under `concurrency` ends with the response anyway.
- A key function that returns None or "" doesn't switch the limit off: such requests share one
  bucket, `anonymous`, and a warning is logged once.
- `get_remote_address` takes IPv6 by its /64 network.
- OPTIONS is counted only by a limit whose `methods` name it.
- There is no `reset()` of a whole store; `mirab.Limiter.reset(key)` forgets a key.
- Every counted response carries `RateLimit` and `RateLimit-Policy`, and only a refusal carries
  `Retry-After`; `headers_enabled` adds `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
- A key that is blocked (`mirab.Limiter.block`) on the same store is refused by every limit.
- The default store is the process's own memory: several workers need a shared one, `storage_uri="shm:NAME"`
  on one host, "redis://..." on several.
- When the store fails, the same limits hold in each process until it answers again (`on_store_failure`,
  "local" unless given). "open" lets all requests pass, "closed" answers 503 with `Retry-After`; with "raise"
  the error is raised, or is what `swallow_errors` swallows.
- A limit with a name ("login=5/minute") is one bucket for all routes that write it. `clock`,
  `on_store_failure` and `instances` are those of `mirab.Limiter`.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from flask import Blueprint, Flask, Response, current_app, request

from mirab import _flask_check as check
from mirab._flask_answer import NotDecided, RateLimitExceeded, RequestLimit, headers, strictest
from mirab._flask_hold import EndsHeld, Held
from mirab._flask_record import Record
from mirab._flask_rule import DeductWhen, KeyFunc, LimitValue, OnBreach, Rule
from mirab._flask_settings import CONFIG, Settings, check_given, refuse_unknown
from mirab._mirab import InvalidArgument, ManualClock, Unsupported
from mirab.http import Clients

__all__ = [
    "Limiter",
    "NotDecided",
    "RateLimitExceeded",
    "RequestLimit",
    "client_address",
    "get_remote_address",
]

View = TypeVar("View", bound=Callable[..., Any])

_RULES = "__mirab_rules__"
_EXEMPT = "__mirab_exempt__"

_DIRECT = Clients()


def get_remote_address() -> str:
    """Return the address of who sent the request, an IPv6 one by its /64; empty when there is none.

    Behind a proxy, that is the proxy: use `client_address`, or Werkzeug's ProxyFix.
    """
    address = request.remote_addr or ""
    return _DIRECT.key(address) or address


def client_address(
    trusted_proxies: Sequence[str] | int,
    *,
    header: str = "X-Forwarded-For",
    ipv6_prefix: int = 64,
) -> Callable[[], str]:
    """Return a key function: the client's address, as the trusted proxies tell it, and nobody else.

    trusted_proxies: networks ("10.0.0.0/8", "loopback", "unix"), or the number of proxies.
    header: the one that they write; "Forwarded" is read as RFC 7239 says.
    ipv6_prefix: how many bits of an IPv6 address make a client.

    Don't use it behind ProxyFix, which has replaced the address of the proxy. Raises InvalidArgument for
    anything else.
    """
    clients = Clients(trusted_proxies, header=header, ipv6_prefix=ipv6_prefix)
    told = clients.header

    def client_key() -> str:
        lines = request.headers.getlist(told) if told else ()
        return clients.key(request.remote_addr, lines) or ""

    return client_key


class Limiter:
    """Flask-Limiter's extension on mirab's engine; see the module's text for what differs."""

    def __init__(
        self,
        key_func: KeyFunc,
        *,
        app: Flask | None = None,
        default_limits: str | Sequence[LimitValue] | None = None,
        default_limits_deduct_when: DeductWhen | None = None,
        application_limits: str | Sequence[LimitValue] | None = None,
        application_limits_deduct_when: DeductWhen | None = None,
        headers_enabled: bool | None = None,
        storage_uri: str | None = None,
        storage_options: Mapping[str, object] | None = None,
        strategy: str | None = None,
        swallow_errors: bool | None = None,
        key_prefix: str | None = None,
        enabled: bool = True,
        on_breach: OnBreach | None = None,
        retry_after: str | None = None,
        clock: ManualClock | Callable[[], float] | None = None,
        on_store_failure: str = "local",
        instances: int | None = None,
        max_hold: float = 1.0,
        **others: object,
    ) -> None:
        """Prepare the extension, and with `app` put it in front of that app.

        key_func: returns who is limited, for every limit without a `key_func` of its own.
        default_limits: for each route that has no limit of its own that overrides them.
        application_limits: for all routes together.
        ..._deduct_when: as in `limit`.
        max_hold: the seconds that a `leaky_bucket` may hold a request; one that would wait longer is a 429.
        An argument that is None is taken from the app's `RATELIMIT_` config.
        """
        refuse_unknown("Limiter", others)
        self.enabled = check.flag("enabled", enabled)
        self._given = {
            "application_limits": application_limits,
            "application_limits_deduct_when": application_limits_deduct_when,
            "clock": clock,
            "default_limits": default_limits,
            "default_limits_deduct_when": default_limits_deduct_when,
            "headers_enabled": headers_enabled,
            "instances": instances,
            "key_func": key_func,
            "key_prefix": key_prefix,
            "max_hold": max_hold,
            "on_breach": on_breach,
            "on_store_failure": on_store_failure,
            "retry_after": retry_after,
            "storage_options": storage_options,
            "storage_uri": storage_uri,
            "strategy": strategy,
            "swallow_errors": swallow_errors,
        }
        check_given(self._given)
        self._filters: list[Callable[[], bool]] = []
        self._settings: WeakKeyDictionary[Flask, Settings] = WeakKeyDictionary()
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Put the limits in front of `app`; for the enabled state, the app's config comes first."""
        if not isinstance(app, Flask):
            raise check.wrong("app", app, "a Flask app")
        hooked = app in self._settings
        self._settings[app] = Settings.of(app, self._given)
        enabled = app.config.get(CONFIG["enabled"])
        if enabled is not None:
            self.enabled = check.flag(CONFIG["enabled"], enabled)
        if not hooked:
            app.extensions.setdefault("limiter", set()).add(self)
            app.before_request(self._before_request)
            app.after_request(self._after_request)
            app.wsgi_app = EndsHeld(app.wsgi_app, self._slot("held"))  # type: ignore[method-assign]

    def limit(
        self,
        limit_value: LimitValue,
        *,
        key_func: KeyFunc | None = None,
        per_method: bool = False,
        methods: str | Iterable[str] | None = None,
        error_message: str | Callable[[], str] | None = None,
        exempt_when: Callable[[], bool] | None = None,
        override_defaults: bool = True,
        deduct_when: DeductWhen | None = None,
        on_breach: OnBreach | None = None,
        cost: int | Callable[[], int] = 1,
        scope: str | Callable[[str], str] | None = None,
        **others: object,
    ) -> Callable[[View], View]:
        """Limit a view function (below its route decorator), or any function that serves a request.

        limit_value: notation, also of several limits ("5/minute; 100/hour"), a `mirab.Limit`, or a
            callable that returns either for each request.
        methods: those that are counted, in a list, or one by itself; without, all but OPTIONS.
        deduct_when: tells from the response whether the request is counted.
        """
        refuse_unknown("limit", others)
        return self._decorator(
            Rule(
                value=limit_value,
                key_func=key_func,
                per_method=per_method,
                methods=check.methods(methods),
                error_message=error_message,
                exempt_when=exempt_when,
                override_defaults=override_defaults,
                deduct_when=deduct_when,
                on_breach=on_breach,
                cost=cost,
                scope=scope,
            )
        )

    def shared_limit(
        self,
        limit_value: LimitValue,
        scope: str | Callable[[str], str],
        *,
        key_func: KeyFunc | None = None,
        per_method: bool = False,
        methods: str | Iterable[str] | None = None,
        error_message: str | Callable[[], str] | None = None,
        exempt_when: Callable[[], bool] | None = None,
        override_defaults: bool = True,
        deduct_when: DeductWhen | None = None,
        on_breach: OnBreach | None = None,
        cost: int | Callable[[], int] = 1,
        **others: object,
    ) -> Callable[[View], View]:
        """Limit several view functions together: those that name the same scope share the bucket."""
        refuse_unknown("shared_limit", others)
        return self._decorator(
            Rule(
                value=limit_value,
                key_func=key_func,
                per_method=per_method,
                methods=check.methods(methods),
                error_message=error_message,
                exempt_when=exempt_when,
                override_defaults=override_defaults,
                deduct_when=deduct_when,
                on_breach=on_breach,
                cost=cost,
                scope=scope,
                shared=True,
            )
        )

    def exempt(self, obj: View) -> View:
        """Take a view function out of the application's and the default limits."""
        _refuse_undecoratable(obj)
        setattr(obj, _EXEMPT, (*getattr(obj, _EXEMPT, ()), self))
        return obj

    def request_filter(self, fn: Callable[[], bool]) -> Callable[[], bool]:
        """Let requests pass without a limit when `fn` returns true."""
        self._filters.append(check.function("request_filter", fn, "a function that tells whether to pass"))
        return fn

    @property
    def current_limit(self) -> RequestLimit | None:
        """The limit that says most about this request: the refusing one, else that with fewest left."""
        record = self._known_record()
        answer = strictest(record.answers) if record else None
        return answer.limits()[answer.saying] if answer else None

    @property
    def current_limits(self) -> list[RequestLimit]:
        """The limits that have counted this request, in that order, and those that refused it."""
        record = self._known_record()
        return [limit for answer in record.answers for limit in answer.limits()] if record else []

    def _decorator(self, rule: Rule) -> Callable[[View], View]:
        def decorate(view: View) -> View:
            _refuse_undecoratable(view)
            name = f"{view.__module__}.{getattr(view, '__qualname__', type(view).__qualname__)}"

            @functools.wraps(view)
            def limited(*args: Any, **kwargs: Any) -> Any:
                self._check_call(rule, name)
                return current_app.ensure_sync(view)(*args, **kwargs)

            setattr(limited, _RULES, ((self, rule), *getattr(view, _RULES, ())))
            return cast("View", limited)

        return decorate

    def _before_request(self) -> None:
        """Check the application's limits, the route's and the defaults, in that order."""
        record = self._record()
        if record.skip:
            return
        view = current_app.view_functions.get(request.endpoint or "")
        own = [rule for limiter, rule in getattr(view, _RULES, ()) if limiter is self]
        rules = [(rule, request.endpoint) for rule in own]
        if self not in getattr(view, _EXEMPT, ()):
            rules[:0] = [(rule, None) for rule in record.settings.application]
            if not any(rule.override_defaults for rule in own):
                rules += [(rule, request.endpoint) for rule in record.settings.defaults]
        record.check(rules)

    def _check_call(self, rule: Rule, name: str) -> None:
        """Check a decorated function that the request's endpoint did not show, as it is called."""
        record = self._record()
        if not record.skip and rule not in record.done:
            record.check([(rule, name)])

    def _after_request(self, response: Response) -> Response:
        record = self._known_record()
        if record:
            record.settle(response)
            for name, value in headers(record.answers, x_ratelimit=record.settings.headers_enabled).items():
                response.headers[name] = value
        return response

    def _record(self) -> Record:
        """Return what is known of this request; the first to ask settles whether it is limited at all."""
        record = self._known_record()
        if record is None:
            app = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001
            if app not in self._settings:
                raise InvalidArgument(f"the app {app.name!r} is not limited by this Limiter: call init_app")
            held = request.environ.get(self._slot("held"), Held(ends=False))
            record = Record(self._settings[app], self._skips(), held)
            request.environ[self._slot("record")] = record
        return record

    def _known_record(self) -> Record | None:
        return cast("Record | None", request.environ.get(self._slot("record")))

    def _slot(self, what: str) -> str:
        """Where the request keeps it: `g` may be shared by the requests of a test."""
        return f"mirab.flask.{what}.{id(self)}"

    def _skips(self) -> bool:
        endpoint = request.endpoint
        if not self.enabled or not endpoint or endpoint.rpartition(".")[2] == "static":
            return True
        return any(passes() for passes in self._filters)


def _refuse_undecoratable(obj: object) -> None:
    if isinstance(obj, Blueprint):
        raise Unsupported(f"the blueprint {obj.name!r}: in this release, decorate its view functions")
    if isinstance(obj, type):
        raise Unsupported(f"the class {obj.__name__}: put the decorator into its list `decorators`")
    if not callable(obj):
        raise InvalidArgument(f"{obj!r} cannot be decorated: it must be a view function")
