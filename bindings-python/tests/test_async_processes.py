"""Children of os.fork that use an `AsyncLimiter` made, and used, before."""

import asyncio

import pytest

from children import in_child
from loops import Run, every_loop
from mirab import AsyncLimiter
from redis_server import Server

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

ROUNDS = 100


@every_loop
def test_child_after_child_decides_in_a_loop_of_its_own(server: Server, run: Run) -> None:
    limiter = AsyncLimiter(f"{4 * ROUNDS}/day", server.uri(), on_store_failure="raise")

    async def ask() -> None:
        assert all(await asyncio.gather(limiter.allow("k"), limiter.allow("k")))

    run(ask())
    for _ in range(ROUNDS - 1):
        in_child(lambda: run(ask()))
        run(ask())
    assert run(limiter.peek("k")).used == 4 * ROUNDS - 2


@every_loop
def test_a_child_of_a_loop_that_runs_leaves_its_parents_connection_alone(server: Server, run: Run) -> None:
    limiter = AsyncLimiter("100/day", server.uri(), on_store_failure="raise")

    async def ask(rounds: int) -> None:
        for _ in range(rounds):
            assert await limiter.allow("k")

    async def parent() -> None:
        await ask(1)
        for _ in range(3):
            asked = asyncio.create_task(ask(5))
            await asyncio.sleep(0)  # it is on its way
            in_child(lambda: asyncio.run(ask(5)))
            await asked
        assert server.connections() == 1
        assert (await limiter.peek("k")).used == 31

    run(parent())
