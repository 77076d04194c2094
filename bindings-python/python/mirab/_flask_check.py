"""Whether an option can be right, checked where it is given: what cannot is an error that names it."""

import inspect
import math
import operator
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mirab._mirab import InvalidArgument, InvalidLimit, InvalidUri, Limit

_MOST_UNITS = 2**53
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LONGEST = 80


def wrong(name: str, value: object, right: str) -> InvalidArgument:
    """Make the error that says what would be right."""
    return InvalidArgument(f"{name} {_shown(value)}: it must be {right}")


def flag(name: str, value: object) -> bool:
    """Return True or False; text such as "false" would be true."""
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise wrong(name, value, "True or False")


def text(name: str, value: object, right: str = "text") -> str:
    """Return text that has a UTF-8 form."""
    if not isinstance(value, str):
        raise wrong(name, value, right)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name} {_shown(value)}: a lone surrogate has no UTF-8 form") from None
    return value


def function(name: str, value: Any, right: str = "a function") -> Any:
    """Return a function; that of a coroutine would return a coroutine, which is true and never the same."""
    if not callable(value):
        raise wrong(name, value, right)
    if inspect.iscoroutinefunction(value):
        raise InvalidArgument(f"{name} {_shown(value)}: it must be {right}, and no coroutine function")
    return value


def text_or_function(name: str, value: Any) -> Any:
    """Return text, or a function that returns it."""
    right = "text, or a function that returns it"
    return function(name, value, right) if callable(value) else text(name, value, right)


def message(name: str, value: object) -> None:
    """Refuse what is no text, nor what a translator makes text of later."""
    if isinstance(value, (int, float, bytes, bytearray, list, tuple, set, dict)):
        raise wrong(name, value, "text")


def units(name: str, value: Any) -> int:
    """Return a cost."""
    try:
        whole = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = -1
    if not 0 <= whole <= _MOST_UNITS:
        raise wrong(name, value, "an integer from 0 to 9007199254740992 (2^53)")
    return whole


def methods(value: object) -> frozenset[str] | None:
    """Return the methods of requests; one may be given by itself."""
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    right = 'a list of methods, as in ["GET", "POST"], or one'
    if not isinstance(names, Iterable):
        raise wrong("methods", value, right)
    found = set()
    for name in names:
        if not isinstance(name, str) or not _METHOD.fullmatch(name):
            raise wrong("methods", value, right)
        found.add(name.upper())
    if not found:  # it would never apply
        raise wrong("methods", value, right)
    return frozenset(found)


def limits(name: str, values: Any) -> Collection[Any]:
    """Return the app's own limits as a list of limit values."""
    if isinstance(values, (str, Limit)) or callable(values):
        return [values]
    if isinstance(values, (bytes, bytearray, Mapping)) or not isinstance(values, Collection):
        right = 'text such as "5/minute", a Limit, a callable, or a list of them'
        raise InvalidLimit(f"{name} {_shown(values)}: it must be {right}")
    return values


def storage_uri(name: str, value: object) -> str:
    """Return a store's URI. No text, nor bytes, is shown: it may hold a password."""
    if not isinstance(value, str):
        given = f"of {type(value).__name__}" if isinstance(value, (bytes, bytearray)) else _shown(value)
        raise InvalidArgument(f'{name} {given}: it must be a URI such as "redis://127.0.0.1:6379"')
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidUri(f"{name}: a lone surrogate has no UTF-8 form; write other bytes as %XX") from None
    return value


def storage_options(name: str, value: object) -> Mapping[str, object]:
    """Return the options of a store; which of them there are is not looked at."""
    if not isinstance(value, Mapping) or not all(isinstance(option, str) for option in value):
        raise wrong(name, value, 'a mapping such as {"timeout_ms": 50}')
    return value


def seconds(name: str, value: object, least: float = 0) -> float:
    """Return a number of seconds."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not least <= value < math.inf:  # type: ignore[operator]
        raise wrong(name, value, f"a number of seconds, {least} or more")
    return value  # type: ignore[return-value]


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
