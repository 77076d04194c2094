"""A program under gevent, monkey-patched, whose Redis stands still."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from redis_server import PATIENCE, Server

PROGRAM = """
from gevent import monkey

monkey.patch_all()

import json, os, signal, sys, time

import gevent
import mirab

uri, redis = sys.argv[1], int(sys.argv[2])
limiter = mirab.Limiter("1000000/hour", uri)
ticks, calls, degraded, there = [], [], 0, 0


def decide():
    global degraded, there
    begun = time.perf_counter()
    decision = limiter.acquire("k")
    calls.append(time.perf_counter() - begun)
    degraded += decision.degraded
    there += not decision.degraded


def work():
    while True:
        decide()
        gevent.sleep(0.001)


def tick():
    while True:
        ticks.append(time.perf_counter())
        gevent.sleep(0.001)


def store_decides():
    while True:
        before = there
        decide()
        if there > before:
            return
        gevent.sleep(0.005)


with gevent.Timeout(PATIENCE):
    store_decides()
    ticking = gevent.spawn(tick)
    gevent.sleep(0.01)
    working = [gevent.spawn(work) for _ in range(20)]
    calls.clear()
    os.kill(redis, signal.SIGSTOP)
    begun = time.perf_counter()
    gevent.sleep(1)
    passed = time.perf_counter() - begun
    os.kill(redis, signal.SIGCONT)
    gevent.killall([*working, ticking])
    gaps = [later - earlier for earlier, later in zip(ticks, ticks[1:])]
    longest, away = max(calls), degraded
    store_decides()
told = {"ticks": len(ticks), "gap": max(gaps), "call": longest, "degraded": away, "passed": passed}
print(json.dumps(told))
"""


def test_a_frozen_server_leaves_the_hub_turning(server: Server, say: Callable[[str], None]) -> None:
    process = server.pid()
    program = PROGRAM.replace("PATIENCE", str(PATIENCE))
    command = [sys.executable, "-c", program, server.uri("timeout_ms=50&connect_timeout_ms=50"), str(process)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=2 * PATIENCE)
    finally:
        os.kill(process, signal.SIGCONT)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    say(
        f"{told['degraded']} decided here, {told['ticks']} ticks, the longest call "
        f"{told['call'] * 1e3:.1f} ms, the longest standstill {told['gap'] * 1e3:.1f} ms"
    )
    assert told["degraded"] > 100
    assert told["ticks"] > 10
    # Five calls, maybe in a row, wait for their deadline; then nobody waits any more.
    assert told["call"] < 0.7
    assert told["gap"] < 5 * 0.7
    assert told["passed"] < 10
