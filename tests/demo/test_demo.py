"""The demo itself: it passes, it fails loudly when buckets are not shared, and it leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from apps import ROOT

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
SECONDS = 60


@contextmanager
def demo(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "scripts/demo.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # As in a terminal: whoever started us may ignore Ctrl-C, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(SECONDS)


def check_all_stopped(output: str) -> None:
    ports = set(ADDRESS.findall(output))
    assert len(ports) == 2, output
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)), timeout=1).close()


def test_it_shows_one_bucket(redis_store: str) -> None:
    # A prefix of its own, since the demo expects users whose buckets are full.
    with demo("--store", f"{redis_store}&prefix=demo{os.urandom(4).hex()}") as process:
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    assert "Exact: each answer is what one bucket gives" in output
    for user in ("gulnora", "rustam", "zaynab"):
        assert len(re.findall(rf"^  {user} .* accepted", output, re.MULTILINE)) == 2, output
    check_all_stopped(output)


def test_it_fails_when_each_process_counts_for_itself() -> None:
    with demo("--store", "memory:") as process:
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 1, output
    assert "NOT EXACT: request" in output
    check_all_stopped(output)


def test_it_fails_when_the_store_is_away() -> None:
    with demo("--store", "redis://127.0.0.1:1") as process:
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 1, output
    assert "not with 200 or 429" in output
    check_all_stopped(output)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_everything_when_it_is_stopped(redis_store: str, number: signal.Signals) -> None:
    with demo("--store", redis_store) as process:
        assert process.stdout
        output = ""
        for line in process.stdout:
            output += line
            if "Everybody waits" in line:
                break
        process.send_signal(number)
        assert process.wait(SECONDS) == 128 + number
    check_all_stopped(output)
