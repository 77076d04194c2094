"""The stores that programs share."""

from collections.abc import Iterator

import pytest

from apps import shared_memory


@pytest.fixture(params=["shm", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "redis":
        yield request.getfixturevalue("redis_store")
        return
    with shared_memory("servers") as store:
        yield store
