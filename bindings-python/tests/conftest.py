"""What the tests share: a private Redis, and stores to run a test on."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator

import pytest

from mirab import Store
from redis_server import Server


@pytest.fixture
def redis_uri() -> str:
    """The Redis of this run, under a prefix of the test's own."""
    address = os.environ.get("MIRAB_TEST_REDIS")
    assert address, "MIRAB_TEST_REDIS is not set: run scripts/with-redis.sh"
    return f"{address}?timeout_ms=5000&prefix={uuid.uuid4().hex}"


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Says what was measured, also where the output of tests that pass is kept back."""

    def write(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return write


@pytest.fixture
def server() -> Iterator[Server]:
    """A Redis of the test's own."""
    server = Server()
    yield server
    server.end()


@pytest.fixture(params=["memory", "redis"])
def store_uri(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every store in turn, empty, and kept open for the whole test."""
    if request.param == "memory":
        uri = f"memory:{uuid.uuid4().hex}"
    else:
        uri = str(request.getfixturevalue("redis_uri"))
    store = Store(uri)
    yield uri
    del store
