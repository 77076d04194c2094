"""Threads, and children of os.fork that use a limiter made before."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from children import in_child
from mirab import Limiter

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_threads_pass_exactly_the_capacity(store_uri: str) -> None:
    limiter = Limiter("100/day", store_uri, on_store_failure="raise")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            passed = list(pool.map(lambda _: limiter.allow("k"), range(1000)))
    finally:
        sys.setswitchinterval(interval)
    assert sum(passed) == 100


@pytest.mark.parametrize("used_before", [False, True])
def test_a_child_uses_an_inherited_memory_limiter(*, used_before: bool) -> None:
    limiter = Limiter("2/day")
    if used_before:
        assert limiter.allow("k")

    def child() -> None:
        assert limiter.peek("k").used == int(used_before)
        assert limiter.allow("k")
        assert Limiter("1/day").allow("k")

    in_child(child)
    assert limiter.peek("k").used == int(used_before)


@pytest.mark.parametrize("used_before", [False, True])
def test_parent_and_child_share_a_bucket(common_uri: str, *, used_before: bool) -> None:
    limiter = Limiter("10/day", common_uri, on_store_failure="raise")
    expected = 0
    if used_before:
        assert limiter.allow("k")
        expected += 1

    def child() -> None:
        for _ in range(3):
            assert limiter.allow("k")
        assert Limiter("10/day", common_uri, on_store_failure="raise").allow("k")

    in_child(child)
    assert limiter.peek("k").used == expected + 4
    assert limiter.acquire("k").used == expected + 5


def test_a_fork_beside_busy_threads(store_uri: str) -> None:
    limiter = Limiter("1000000/day", store_uri, on_store_failure="raise")
    busy = True

    def work() -> None:
        while busy:
            limiter.allow("k")

    def child() -> None:
        for number in range(50):
            assert limiter.allow(f"child:{number}")

    with ThreadPoolExecutor(3) as pool:
        threads = [pool.submit(work) for _ in range(3)]
        try:
            for _ in range(10):
                in_child(child)
        finally:
            busy = False
    for thread in threads:
        thread.result()
