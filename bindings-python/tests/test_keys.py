"""Keys: any bytes, each its own bucket, on every store."""

import pytest

from mirab import InvalidArgument, Limiter

STRANGE: list[str | bytes] = [
    "a\0b",
    "a",
    "a\0",
    "\0a",
    "'",
    '"',
    "'; FLUSHALL --",
    "{a}",
    "{",
    "}",
    "{}",
    "}{a",
    "a}b",
    "%7Ba%7D",
    "a b",
    "a\r\nb",
    "a:b",
    "a!b",
    "~a",
    "ключ",
    "مفتاح",
    "🔑",
    "x" * 10_000,
    "x" * 10_001,
    "{" * 10_000,
    "y" * 65_536,
    b"\xff\xfe",
    b"\x00" * 10_000,
    b"\xed\xb2\x80",
]


def test_strange_keys_have_buckets_of_their_own(store_uri: str) -> None:
    limiter = Limiter("5/hour", store_uri)
    for key in STRANGE:
        assert limiter.acquire(key).used == 1, key
    for key in STRANGE:
        assert limiter.acquire(key).used == 2, key
        assert limiter.peek(key).used == 2, key
        limiter.reset(key)
        assert limiter.peek(key).used == 0, key


def test_text_is_its_utf8(store_uri: str) -> None:
    limiter = Limiter("5/hour", store_uri)
    for text in ("a", "ключ", "🔑"):
        limiter.acquire(text)
        assert limiter.acquire(text.encode()).used == 2


@pytest.mark.parametrize(
    "key",
    [
        "",
        b"",
        "x" * 65_537,
        b"x" * 65_537,
        "é" * 32_769,
        "\udc80",
        "a\ud83d",
        None,
        5,
        1.5,
        ["a"],
        bytearray(b"a"),
    ],
)
def test_bad_keys(store_uri: str, key: str) -> None:
    limiter = Limiter("5/hour", store_uri)
    for operation in (limiter.acquire, limiter.allow, limiter.peek, limiter.reset):
        with pytest.raises(InvalidArgument, match="key") as caught:
            operation(key)
        assert len(str(caught.value)) < 400
