"""`wait`: at the promised instants, without a busy loop, on a clock of its own or in real time."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest

from mirab import AsyncLimiter, Closed, Decision, InvalidArgument, Limiter, ManualClock, Refused

THREADS = 32
LATE = 1.0  # how late a loaded machine may wake a thread


@contextmanager
def threads(count: int = THREADS) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(count) as pool:
        yield pool


def all_at_once(pool: ThreadPoolExecutor, work: Callable[[], Decision]) -> list["Future[Decision]"]:
    """Start it in every thread of the pool at the same time."""
    start = threading.Barrier(THREADS + 1)

    def begin() -> Decision:
        start.wait()
        return work()

    futures = [pool.submit(begin) for _ in range(THREADS)]
    start.wait()
    return futures


# On a manual clock


@pytest.mark.parametrize(
    ("text", "cost", "waits_us"),
    [
        ("1/minute", 1, 60_000_000),
        ("7/minute", 3, 25_714_286),
        ("fixed_window: 7/minute", 1, 60_000_000),
        ("fixed_window: 7/minute from first", 7, 60_000_000),
        ("sliding_log: 7/minute", 7, 60_000_000),
        ("concurrency: 7 for 30s", 7, 30_000_000),
    ],
)
def test_a_manual_clock_is_advanced_to_the_promised_instant(
    store_uri: str, text: str, cost: int, waits_us: int
) -> None:
    clock = ManualClock()
    limiter = Limiter(text, store_uri, clock=clock)
    limiter.acquire("k", limiter.limits[0].capacity)
    promised = limiter.peek("k", cost).retry_after
    begun = time.monotonic()
    decision = limiter.wait("k", cost)
    assert time.monotonic() - begun < LATE
    assert decision
    assert promised
    assert clock.now_us == round(promised * 1e6) == waits_us


def test_what_is_there_is_not_waited_for(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("5/minute", store_uri, clock=clock)
    assert limiter.wait("k", 5).used == 5
    assert limiter.wait("k", cost=0)
    assert clock.now_us == 0


def test_a_leaky_bucket_is_waited_for_until_its_turn(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("leaky_bucket: 1/second queue 1", store_uri, clock=clock)
    turns = []
    for _ in range(4):
        assert limiter.wait("k")
        turns.append(clock.now_us)
    assert turns == [0, 1_000_000, 2_000_000, 3_000_000]


def test_a_wait_beyond_the_timeout_returns_at_once(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("1/minute", store_uri, clock=clock)
    limiter.acquire("k")
    for timeout in (59.999_999, timedelta(seconds=59), 0.000_001):
        refusal = limiter.wait("k", 1, timeout)
        assert (refusal.allowed, refusal.retry_after, clock.now_us) == (False, 60.0, 0)
    assert limiter.wait("k", timeout=60).allowed
    assert clock.now_us == 60_000_000


def test_a_turn_beyond_the_timeout_is_left_to_the_caller(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("leaky_bucket: 1/second queue 5", store_uri, clock=clock)
    limiter.acquire("k", 3)
    decision = limiter.wait("k", timeout=2)
    assert (decision.allowed, decision.delay, clock.now_us) == (True, 3.0, 0)
    assert limiter.refund(decision) == 1


def test_never_and_a_block(store_uri: str) -> None:
    clock = ManualClock()
    limiter = Limiter("5/minute", store_uri, clock=clock)
    assert limiter.wait("k", 6).never
    assert Limiter("deny", store_uri, clock=clock).wait("k").never
    assert clock.now_us == 0
    limiter.block("k", 90)
    assert limiter.wait("k", timeout=89).blocked
    assert limiter.wait("k", timeout=90)
    assert clock.now_us == 90_000_000


def test_what_is_waited_for_can_be_settled(store_uri: str) -> None:
    limiter = Limiter("1/minute; concurrency: 1 for 1h", store_uri, clock=ManualClock())
    limiter.release(limiter.acquire("k"))
    decision = limiter.wait("k")
    assert limiter.refund(decision) == 1
    assert [standing.used for standing in limiter.peek("k").standings] == [0, 0]


@pytest.mark.parametrize(
    "timeout", [-1, float("nan"), float("inf"), True, "1", 1e-7, -timedelta(1), timedelta.max]
)
def test_bad_timeouts(timeout: float) -> None:
    limiter = Limiter("5/minute")
    with pytest.raises(InvalidArgument, match="timeout"):
        limiter.wait("k", 1, timeout)
    assert limiter.peek("k").used == 0


@pytest.mark.parametrize("timeout", [0, 0.0, timedelta(0)])
def test_a_timeout_of_nothing_asks_once(store_uri: str, timeout: float) -> None:
    limiter = Limiter("concurrency: 1 for 600s; leaky_bucket: 1/hour queue 5", store_uri)
    with limiter.hold("k", max_wait=timeout) as decision:
        assert decision
        assert not limiter.wait("k", timeout=timeout)
        with pytest.raises(Refused), limiter.hold("k", max_wait=timeout):
            pytest.fail("it was entered")
    assert limiter.wait("k", timeout=timeout).delay > 3000  # it is told its turn, and doesn't sleep


@pytest.mark.parametrize("timeout", [0, timedelta(0)])
def test_a_task_with_a_timeout_of_nothing_asks_once(store_uri: str, timeout: float) -> None:
    async def ask() -> None:
        limiter = AsyncLimiter("concurrency: 1 for 600s", store_uri)
        async with limiter.hold("k", max_wait=timeout):
            assert not await limiter.wait("k", timeout=timeout)
            with pytest.raises(Refused):
                async with limiter.hold("k", max_wait=timeout):
                    pytest.fail("it was entered")

    asyncio.run(ask())


def test_bad_keys_and_costs() -> None:
    for key, cost in (("", 1), (5, 1), ("k", -1), ("k", 2**53 + 1)):
        with pytest.raises(InvalidArgument):
            Limiter("5/minute").wait(key, cost)  # type: ignore[arg-type]


def test_many_threads_on_a_manual_clock() -> None:
    clock = ManualClock()
    limiter = Limiter("1/hour", clock=clock)
    begun = time.monotonic()
    with threads() as pool:
        assert all(pool.map(lambda _: limiter.wait("k"), range(THREADS)))
    assert time.monotonic() - begun < 10 * LATE
    assert limiter.stats().allowed == THREADS
    assert clock.now_us >= (THREADS - 1) * 3_600_000_000


# In real time


def test_threads_are_admitted_at_the_promised_instants(store_uri: str) -> None:
    limiter = Limiter("50/second burst 1", store_uri)
    limiter.allow("k")
    begun, cpu = time.monotonic(), time.process_time()
    moments: list[float] = []

    def work() -> Decision:
        decision = limiter.wait("k")
        moments.append(time.monotonic() - begun)
        return decision

    with threads() as pool:
        decisions = [future.result() for future in all_at_once(pool, work)]
    assert all(decisions)
    for turn, moment in enumerate(sorted(moments)):
        # The bucket was emptied before `begun`, by no more than the machine's hesitation.
        assert (turn + 1) * 0.02 - 0.015 <= moment
    assert max(moments) <= THREADS * 0.02 + LATE
    stats = limiter.stats()
    assert stats.allowed == THREADS + 1
    # Each asks once when it comes and once at each instant of admission: no more.
    assert stats.refused <= THREADS * (THREADS + 1) / 2 + THREADS
    assert time.process_time() - cpu < 0.5


def test_a_wait_costs_one_decision(store_uri: str) -> None:
    limiter = Limiter("4/second burst 1", store_uri)
    limiter.allow("k")
    cpu = time.process_time()
    assert limiter.wait("k")
    stats = limiter.stats()
    assert (stats.allowed, stats.refused) == (2, 1)
    assert time.process_time() - cpu < 0.1


def test_threads_time_out(store_uri: str) -> None:
    limiter = Limiter("10/second burst 1", store_uri)
    limiter.allow("k")
    begun = time.monotonic()
    with threads() as pool:
        decisions = [future.result() for future in all_at_once(pool, lambda: limiter.wait("k", 1, 0.55))]
    took = time.monotonic() - begun
    admitted = sum(map(bool, decisions))
    assert 1 <= admitted <= 6
    assert took < 0.55 + LATE
    assert all(decision.retry_after for decision in decisions if not decision)
    assert limiter.stats().allowed == admitted + 1
    assert limiter.peek("k").used <= 1  # those who timed out have charged nothing


def test_a_place_is_waited_for_until_the_timeout(store_uri: str) -> None:
    limiter = Limiter("concurrency: 1 for 60s", store_uri)
    held = limiter.acquire("k")
    begun = time.monotonic()
    assert not limiter.wait("k", timeout=0.2)
    assert 0.2 <= time.monotonic() - begun < 0.2 + LATE
    threading.Timer(0.2, limiter.release, [held]).start()
    assert limiter.wait("k", timeout=20)
    assert time.monotonic() - begun < 0.4 + 2 * LATE
    assert limiter.stats().refused < 60  # it asks every 20 milliseconds


def test_closing_wakes_every_thread(store_uri: str) -> None:
    limiter = Limiter("1/hour", store_uri)
    limiter.allow("k")
    with threads() as pool:
        futures = all_at_once(pool, lambda: limiter.wait("k"))
        time.sleep(0.2)
        assert not any(future.done() for future in futures)
        refused = limiter.stats().refused
        begun = time.monotonic()
        limiter.close()
        for future in futures:
            with pytest.raises(Closed):
                future.result(10)
        assert time.monotonic() - begun < LATE
    assert refused == THREADS


def test_closing_wakes_the_main_thread() -> None:
    limiter = Limiter("1/hour")
    limiter.allow("k")
    threading.Timer(0.1, limiter.close).start()
    begun = time.monotonic()
    with pytest.raises(Closed):
        limiter.wait("k")
    assert time.monotonic() - begun < 0.1 + LATE


def test_a_callable_clock_is_waited_for_in_real_time() -> None:
    limiter = Limiter("5/second burst 1", clock=time.time)
    limiter.allow("k")
    begun = time.monotonic()
    assert limiter.wait("k")
    assert 0.19 <= time.monotonic() - begun < 0.2 + LATE


def test_what_a_clock_raises_ends_the_wait() -> None:
    readings = iter([1.7e9, 1.7e9])

    def read() -> float:
        return next(readings)

    limiter = Limiter("20/second burst 1", clock=read)
    limiter.allow("k")
    with pytest.raises(StopIteration):
        limiter.wait("k")


# Signals

# A shell that runs the tests in the background lets its children ignore the signal.
INTERRUPTED = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from mirab import Closed, Limiter
limiter = Limiter("1/hour; 9/day", os.environ["MIRAB_TEST_URI"])
limiter.allow("k")
closed = []
def work():
    try:
        limiter.wait("k")
    except Closed:
        closed.append(1)
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers:
    worker.start()
cpu = time.process_time()
try:
    # Whoever hears it may interrupt at once: then this must not leave the workers waiting.
    print("waiting", flush=True)
    limiter.wait("k")
except KeyboardInterrupt:
    print("interrupted", limiter.peek("k").standings[1].used, limiter.stats().refused, flush=True)
assert time.process_time() - cpu < 0.2
limiter.close()
for worker in workers:
    worker.join()
print("closed", len(closed), flush=True)
"""

HANDLED = """
import os, signal
from mirab import Limiter
limiter = Limiter("1/second", os.environ["MIRAB_TEST_URI"])
limiter.allow("k")
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
print("waiting", flush=True)
print(bool(limiter.wait("k")), len(heard), limiter.stats().refused, flush=True)
"""

ASLEEP_AT_EXIT = """
import os, threading, time
from mirab import Limiter
limiter = Limiter("1/hour", os.environ["MIRAB_TEST_URI"])
limiter.allow("k")
threading.Thread(target=limiter.wait, args=("k",), daemon=True).start()
time.sleep(0.2)
print("done", flush=True)
"""


@contextmanager
def running(program: str, uri: str) -> Iterator["subprocess.Popen[str]"]:
    environment = {**os.environ, "MIRAB_TEST_URI": uri}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_ends_a_wait(store_uri: str) -> None:
    with running(INTERRUPTED, store_uri) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted 1 5\n"
        assert time.monotonic() - begun < LATE
        out, err = process.communicate(timeout=20)
        assert (out, err, process.returncode) == ("closed 4\n", "", 0)


def test_ctrl_c_that_nobody_catches_ends_the_process(store_uri: str) -> None:
    program = INTERRUPTED.replace("except KeyboardInterrupt", "except ZeroDivisionError").replace(
        "range(4)", "range(0)"
    )
    with running(program, store_uri) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert "KeyboardInterrupt" in err
        assert process.returncode == -signal.SIGINT


def test_a_handled_signal_does_not_end_a_wait(store_uri: str) -> None:
    with running(HANDLED, store_uri) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=20)
        assert (out, err, process.returncode) == ("True 1 1\n", "", 0)


def test_a_process_ends_beside_a_sleeping_daemon_thread(store_uri: str) -> None:
    with running(ASLEEP_AT_EXIT, store_uri) as process:
        out, err = process.communicate(timeout=20)
        assert (out, err, process.returncode) == ("done\n", "", 0)
