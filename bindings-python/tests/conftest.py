"""What the tests share: a private Redis, and stores to run a test on."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from mirab import Store
from redis_server import Server
from shared import RUN, Shared, files_of


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


@pytest.fixture
def shared() -> Iterator[Shared]:
    """Names for files of shared memory, which are removed in the end."""
    shared = Shared()
    yield shared
    shared.remove()


@pytest.fixture(scope="session", autouse=True)
def no_file_is_left() -> Iterator[None]:
    """What the tests made in shared memory is gone when the last of them has ended."""
    yield
    left = files_of(RUN)
    for path in left:
        with suppress(FileNotFoundError):
            path.unlink()
    assert left == []


@pytest.fixture(params=["shm", "redis"])
def common_uri(request: pytest.FixtureRequest) -> str:
    """Every store in turn that processes share, empty."""
    if request.param == "shm":
        return str(request.getfixturevalue("shared").uri())
    return str(request.getfixturevalue("redis_uri"))


@pytest.fixture(params=["memory", "shm", "redis"])
def store_uri(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every store in turn, empty, and kept open for the whole test."""
    if request.param == "memory":
        uri = f"memory:{uuid.uuid4().hex}"
    elif request.param == "shm":
        uri = request.getfixturevalue("shared").uri()
    else:
        uri = str(request.getfixturevalue("redis_uri"))
    store = Store(uri)
    yield uri
    del store
