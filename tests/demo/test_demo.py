"""The demo itself: it passes, it fails loudly when buckets are not shared, and it leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps import ROOT

SHARED = Path("/dev/shm")
NAME = re.compile(r"kept in shm:(demo-\w+)$", re.MULTILINE)
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


def files(output: str) -> list[Path]:
    """What there is of the store in shared memory that the demo says it plays in."""
    name = NAME.search(output)
    assert name, output
    return list(SHARED.glob(f"*{name[1]}*"))


def check_shows_one_bucket(process: subprocess.Popen[str], output: str) -> None:
    assert process.returncode == 0, output
    assert "Exact: each answer is what one bucket gives" in output
    for user in ("gulnora", "rustam", "zaynab"):
        assert len(re.findall(rf"^  {user} .* accepted", output, re.MULTILINE)) == 2, output
    check_all_stopped(output)


def test_it_shows_one_bucket_in_shared_memory() -> None:
    with demo() as process:
        output, _ = process.communicate(timeout=SECONDS)
    check_shows_one_bucket(process, output)
    assert "no server is needed" in output
    assert files(output) == []


def test_it_shows_one_bucket_on_redis(redis_store: str) -> None:
    # A prefix of its own, since the demo expects users whose buckets are full.
    with demo("--store", f"{redis_store}&prefix=demo{os.urandom(4).hex()}") as process:
        output, _ = process.communicate(timeout=SECONDS)
    check_shows_one_bucket(process, output)
    assert "no server" not in output


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


def read_until_it_waits(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    output = ""
    for line in process.stdout:
        output += line
        if "Everybody waits" in line:
            break
    return output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_everything_when_it_is_stopped(number: signal.Signals) -> None:
    with demo() as process:
        output = read_until_it_waits(process)
        assert len(files(output)) == 1
        process.send_signal(number)
        assert process.wait(SECONDS) == 128 + number
    check_all_stopped(output)
    assert files(output) == []


def test_it_leaves_no_file_when_it_is_killed() -> None:
    with demo() as process:
        output = read_until_it_waits(process)
        assert len(files(output)) == 1
        process.kill()
        process.wait(SECONDS)
        deadline = time.monotonic() + SECONDS
        while files(output) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert files(output) == []


def played(folder: Path, **environment: str) -> tuple[int, str]:
    """How scripts/demo.sh ends and what it says, when nothing has to be built and the demo only tells its arguments."""
    (folder / "tools").mkdir()
    for name, text in {"make": "exit 0", "python": 'echo "$MIRAB_TEST_REDIS" "$@"'}.items():
        (folder / "tools" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "tools" / name).chmod(0o755)
    (folder / "tmp").mkdir()
    mine = {
        "PATH": f"{folder}/tools:{os.environ['PATH']}",
        "PYTHON": f"{folder}/tools/python",
        "TMPDIR": f"{folder}/tmp",
    }
    others = {name: value for name, value in os.environ.items() if name not in ("MIRAB_TEST_REDIS", "STORE")}
    done = subprocess.run(
        ["scripts/demo.sh"],
        cwd=ROOT,
        env={**others, **mine, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert list((folder / "tmp").iterdir()) == []
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("store", ["", "shm"])
def test_without_a_wish_no_redis_is_started(tmp_path: Path, store: str) -> None:
    assert played(tmp_path, STORE=store) == (0, " scripts/demo.py\n")


def test_who_wants_redis_gets_one(tmp_path: Path) -> None:
    status, output = played(tmp_path, STORE="redis")
    assert status == 0
    assert re.fullmatch(r"redis://127\.0\.0\.1:\d+ scripts/demo\.py --store redis\n", output), output


def test_an_unknown_store_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    assert played(tmp_path, STORE="floppy") == (2, 'demo: unknown STORE "floppy": shm or redis\n')
