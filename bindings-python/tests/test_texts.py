"""What is no text, no URI or no span is an error of mirab's that names the argument and the value."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import mirab
from mirab import InvalidArgument, InvalidLimit, InvalidUri, Limit, Limiter, ManualClock, MirabError, Store
from mirab.http import Answers, Clients

SURROGATE = "\ud800"

MAKERS: list[Callable[[Any], object]] = [
    lambda name: Limit.token_bucket(5, 60, name=name),
    lambda name: Limit.leaky_bucket(5, 60, name=name),
    lambda name: Limit.fixed_window(5, 60, name=name),
    lambda name: Limit.sliding_window(5, 60, name=name),
    lambda name: Limit.sliding_log(5, 60, name=name),
    lambda name: Limit.concurrency(5, 60, name=name),
    Limit.deny().with_name,
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", [3, b"login", SURROGATE])
def test_a_name_is_text(make: Callable[[Any], object], name: object) -> None:
    with pytest.raises(InvalidLimit) as caught:
        make(name)
    assert str(caught.value).startswith(f"name {name!r}: ")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: Limit.fixed_window(5, 60, None), InvalidLimit, 'anchor None: it must be "clock" or "first"'),  # type: ignore[arg-type]
        (lambda: Limit.fixed_window(5, 60, 5), InvalidLimit, "anchor 5: it must be"),  # type: ignore[arg-type]
        (lambda: Limit.fixed_window(5, 60, "now"), InvalidLimit, "anchor 'now': it must be"),  # type: ignore[arg-type]
        (lambda: Limit.deny().with_name(None), InvalidLimit, "name None: it must be text"),  # type: ignore[arg-type]
        (lambda: Limit.deny().with_scope(b"a"), InvalidLimit, "scope b'a': it must be text"),  # type: ignore[arg-type]
        (lambda: Limit.deny().with_scope(SURROGATE), InvalidLimit, "scope '\\ud800': a lone surrogate"),
        (lambda: Limit.parse(SURROGATE), InvalidLimit, "limit '\\ud800': a lone surrogate"),
        (lambda: Limiter(SURROGATE), InvalidLimit, "limits '\\ud800': a lone surrogate"),
        (
            lambda: Limit.token_bucket(capacity=5, refill_rate=SURROGATE),
            InvalidLimit,
            "refill_rate '\\ud800': a lone surrogate",
        ),
        (lambda: Store(None), InvalidArgument, "uri None: it must be a URI"),  # type: ignore[arg-type]
        (lambda: Store(5), InvalidArgument, "uri 5: it must be a URI"),  # type: ignore[arg-type]
        (lambda: Store("memory:\udcff"), InvalidUri, "uri: a lone surrogate"),
        (lambda: Limiter("5/minute", None), InvalidArgument, "store None: it must be"),  # type: ignore[arg-type]
        (lambda: Limiter("5/minute", SURROGATE), InvalidUri, "store: a lone surrogate"),
        (
            lambda: Limiter("5/minute", on_store_failure=SURROGATE),
            InvalidArgument,
            "on_store_failure '\\ud800': it must be",
        ),
    ],
)
def test_what_is_no_text(call: Callable[[], object], kind: type[MirabError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda value: Clients(1, header=value), "header"),
        (lambda value: Clients(1, ipv6_prefix=value), "ipv6_prefix"),
        (lambda value: Answers(body=value), "body"),
        (lambda value: Answers().answer(Limiter("5/minute").acquire("k"), policy_name=value), "policy_name"),
    ],
)
@pytest.mark.parametrize("value", [b"x", SURROGATE, 1.5])
def test_what_is_no_text_over_http(call: Callable[[Any], object], message: str, value: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(value)
    assert str(caught.value).startswith(f"{message} {value!r}: ")


def test_who_asks_is_text_or_none() -> None:
    for peer in (5, b"192.0.2.7"):
        with pytest.raises(InvalidArgument, match=f"peer {peer!r}: it must be the text"):
            Clients().key(peer)  # type: ignore[arg-type]
    assert Clients().key(SURROGATE) is None  # as any text that is no address


@pytest.mark.parametrize(
    "uri", [b"redis://u:s3cret@h", bytearray(b"redis://u:s3cret@h"), "redis://u:s3cret@\udcff"]
)
def test_what_may_be_a_uri_is_not_shown(uri: Any) -> None:
    for make in (lambda: Store(uri), lambda: Limiter("5/minute", uri)):
        with pytest.raises(MirabError) as caught:
            make()
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Limit.fixed_window(5, timedelta.max),
        lambda: Limit.concurrency(5, timedelta.max),
        lambda: Limiter("5/minute").block("k", timedelta.max),
        lambda: ManualClock().advance(timedelta.max),
    ],
)
def test_what_is_too_long(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument, match=r"timedelta\(days=999999999, .*: it must be at most"):
        call()


def test_the_class_tells_of_every_argument() -> None:
    signature = inspect.signature(Limiter)
    assert str(signature) == (
        "(limits, store='memory:', *, clock=None, on_store_failure='local', instances=None)"
    )
    text = mirab.Limiter.__doc__
    assert text
    for name in signature.parameters:
        assert f"\n{name}: " in text
