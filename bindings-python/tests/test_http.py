"""The headers of a decision."""

import pytest

from mirab import InvalidArgument, Limiter, ManualClock
from mirab._mirab import client_key, http_headers


def test_headers_of_an_admission() -> None:
    decision = Limiter("5/minute", clock=ManualClock()).acquire("k")
    assert dict(http_headers(decision, ["draft-8"])) == {
        "RateLimit-Policy": '"5/minute";q=5;w=60',
        "RateLimit": '"5/minute";r=4;t=12',
    }


def test_headers_of_a_refusal() -> None:
    limiter = Limiter("1/minute", clock=ManualClock())
    limiter.acquire("k")
    headers = dict(http_headers(limiter.acquire("k"), ["draft-8", "x-ratelimit-epoch"], unix_now=1000))
    assert headers["Retry-After"] == "60"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-RateLimit-Limit"] == "1"
    assert headers["X-RateLimit-Remaining"] == "0"
    assert headers["X-RateLimit-Reset"] == "1060"


def test_every_limit_of_a_policy_is_told() -> None:
    decision = Limiter("5/minute; 100/hour", clock=ManualClock()).acquire("k")
    headers = dict(http_headers(decision, ["draft-8"]))
    assert headers["RateLimit-Policy"] == '"5/minute";q=5;w=60, "100/hour";q=100;w=3600'
    assert headers["RateLimit"] == '"5/minute";r=4;t=12, "100/hour";r=99;t=36'


def test_never_has_no_retry_after() -> None:
    assert "Retry-After" not in dict(http_headers(Limiter("deny").acquire("k"), ["draft-8"]))


def test_names() -> None:
    decision = Limiter("5/minute").acquire("k")
    headers = dict(http_headers(decision, ["draft-8"], policy_name='a"b', partition_key="k"))
    assert headers["RateLimit-Policy"].startswith(r'"a\"b"')
    assert "pk=:" in headers["RateLimit-Policy"]


def test_bad_arguments() -> None:
    decision = Limiter("5/minute").acquire("k")
    with pytest.raises(InvalidArgument, match="draft-99"):
        http_headers(decision, ["draft-99"])  # type: ignore[list-item]
    for now in (-1, float("nan"), "now"):
        with pytest.raises(InvalidArgument, match="unix_now"):
            http_headers(decision, [], unix_now=now)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("nobody", None),
        ("", None),
    ],
)
def test_client_key(address: str, key: str | None) -> None:
    assert client_key(address) == key


def test_client_key_prefix() -> None:
    assert client_key("2001:db8:1:2ff::4", 56) == "2001:db8:1:200::/56"
