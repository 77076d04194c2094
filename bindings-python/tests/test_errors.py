"""Every kind of error has its class, and it is what Python's users already catch."""

import pickle

import pytest

import mirab
from mirab import InvalidArgument, InvalidUri, Limiter, MirabError, Store
from mirab._mirab import ERRORS

ALSO = {
    "invalid_limit": ValueError,
    "invalid_argument": ValueError,
    "invalid_uri": ValueError,
    "invalid_rules": ValueError,
    "unsupported": Exception,
    "closed": Exception,
    "store_unavailable": ConnectionError,
    "store_timeout": TimeoutError,
    "store_denied": ConnectionError,
    "store_full": Exception,
    "store_corrupt": Exception,
    "store_mismatch": Exception,
    "internal": Exception,
}


def test_every_kind_of_the_core_has_a_class() -> None:
    assert set(ERRORS) == set(ALSO)


@pytest.mark.parametrize("kind", ALSO)
def test_a_class(kind: str) -> None:
    error = ERRORS[kind]
    assert error.kind == kind
    assert error.__name__ == "".join(word.capitalize() for word in kind.split("_"))
    assert getattr(mirab, error.__name__) is error
    assert error.__name__ in mirab.__all__
    assert error.__module__ == "mirab"
    assert error.__doc__
    assert issubclass(error, MirabError)
    assert issubclass(error, ALSO[kind])
    raised = error("why")
    assert str(raised) == "why"
    assert type(pickle.loads(pickle.dumps(raised))) is error


def test_a_refusal_is_no_error() -> None:
    assert not issubclass(mirab.Refused, MirabError)


def test_an_error_says_its_kind() -> None:
    with pytest.raises(MirabError) as caught:
        Limiter("0/second")
    assert caught.value.kind == "invalid_limit"
    assert "0/second" in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "nonsense",
        "http://127.0.0.1",
        "redis://",
        "redis://127.0.0.1:notaport",
        "redis://127.0.0.1:6379?colour=red",
        "redis://127.0.0.1:6379?timeout_ms=soon",
        "memory:?colour=red",
    ],
)
def test_bad_uris(uri: str) -> None:
    for make in (lambda: Limiter("5/minute", uri), lambda: Store(uri)):
        with pytest.raises(InvalidUri):
            make()


def test_an_error_hides_the_password() -> None:
    for uri in ("redis://user:s3cret@127.0.0.1:port", "redis://user:s3cret@127.0.0.1:1?colour=red"):
        with pytest.raises(InvalidUri) as caught:
            Store(uri)
        assert "s3cret" not in str(caught.value)


def test_a_store_is_of_a_kind() -> None:
    assert Store("memory:").kind == "memory"
    assert Store("redis://127.0.0.1:1").kind == "redis"
    with pytest.raises(InvalidArgument):
        Store(5)  # type: ignore[arg-type]
