"""scripts/with-redis.sh: a Redis of its own, and nothing left behind, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from apps import ROOT

SCRIPT = str(ROOT / "scripts/with-redis.sh")
SHOW = 'echo "$MIRAB_TEST_REDIS"; '


def start(command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [SCRIPT, "bash", "-c", SHOW + command],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As in a terminal: whoever started us may ignore Ctrl-C, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_until_gone(address: str) -> None:
    port = int(address.rsplit(":", 1)[1])
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return
        assert time.monotonic() < deadline, f"{address} still answers"
        time.sleep(0.02)


def test_the_command_finds_a_redis_that_saves_nothing() -> None:
    with start(
        'redis-cli -u "$MIRAB_TEST_REDIS" --raw config get "*" | paste - - | grep -wE "save|appendonly|bind"'
    ) as process:
        output, _ = process.communicate(timeout=30)
    address, *settings = output.splitlines()
    assert process.returncode == 0
    assert address.startswith("redis://127.0.0.1:")
    assert {tuple(line.split("\t")) for line in settings} >= {("save", ""), ("appendonly", "no"), ("bind", "127.0.0.1")}
    wait_until_gone(address)


@pytest.mark.parametrize("code", [0, 7])
def test_it_ends_as_the_command_ends(code: int) -> None:
    with start(f"exit {code}") as process:
        output, _ = process.communicate(timeout=30)
    assert process.returncode == code
    wait_until_gone(output.strip())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_redis_ends_when_the_script_is_stopped(number: signal.Signals, code: int, tmp_path: Path) -> None:
    told = tmp_path / "told"
    with start(f"trap 'touch {told}; exit' INT TERM; echo $$; sleep 20 & wait") as process:
        assert process.stdout
        address, command = process.stdout.readline().strip(), int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(30) == code
        wait_until_gone(address)
        if number == signal.SIGKILL:  # then nobody could tell the command
            os.killpg(command, signal.SIGTERM)
            process.stdout.read()  # to its end: the command has it open as long as it lives
    assert told.exists()


def test_two_at_once_have_two() -> None:
    with start("sleep 0.5") as one, start("sleep 0.5") as other:
        addresses = {one.communicate(timeout=30)[0], other.communicate(timeout=30)[0]}
    assert len(addresses) == 2


def test_without_a_command_it_says_how() -> None:
    done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (2, "usage: with-redis.sh CMD [ARG...]\n")
