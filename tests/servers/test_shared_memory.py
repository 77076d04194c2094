"""Gunicorn's workers, Node's cluster and a C program rush at one key together: of all they ask, exactly 1 000 pass."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from apps import INSTALLED, App, c_program, flask_app, shared_memory
from client import get

HERE = Path(__file__).resolve().parent / "rush"
REPETITIONS = int(os.environ.get("MIRAB_REPETITIONS", "3"))
SECONDS = 60

CAPACITY = 1_000
HANDS = 4  # of each language: workers, or threads of the C program
PROCESSES = 4 + 4 + 1
# Two languages alone can't take all there is, so each must pass some, whoever comes first.
SHARE = 122
assert 2 * HANDS * SHARE < CAPACITY < 3 * HANDS * SHARE
# What a hand asks beyond that when it has been refused: none of it may pass.
AFTER = 300

# Periods so long that neither a refill nor the end of a window falls into the run.
POLICIES = {
    "bucket": "1/hour burst 1000",
    "sliding": "sliding_window: 1000/30 days",
    "window": "fixed_window: 1000/30 days from first",
    "three": "1/hour burst 1000; fixed_window: 2000/day from first; 5/hour burst 1500",
}


@pytest.fixture
def gunicorn() -> Iterator[App]:
    """Afresh for each test, since a process keeps every file that it has once mapped."""
    with flask_app("", "", workers=HANDS, folder=HERE) as app:
        yield app


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The commands of the other two languages, from the installed packages."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "rush.mjs").write_text((HERE / "rush.mjs").read_text())
    (folder / "node_modules").symlink_to(INSTALLED / "node_http" / "node_modules")
    return {"node": ["node", str(folder / "rush.mjs")], "c": [str(c_program(HERE / "rush.c", folder))]}


def ask_worker(app: App, arguments: dict[str, str]) -> list[tuple[int, int]]:
    reply = get(app, path=f"/?{urlencode(arguments)}")
    assert reply.status == 200, reply
    return [(reply.body["pid"], reply.body["passed"])]


def run_program(command: list[str], arguments: dict[str, str]) -> list[tuple[int, int]]:
    done = subprocess.run([*command, *arguments.values()], capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, ""), done
    pairs = [line.split() for line in done.stdout.splitlines()]
    return [(int(pid), int(passed)) for pid, passed in pairs]


Asked = dict[str, list[Future[list[tuple[int, int]]]]]


def start_together(folder: Path, asked: Asked) -> None:
    """Lets all go when all are ready; also when one has failed, so that the others come to their end."""
    futures = [future for one in asked.values() for future in one]
    deadline = time.monotonic() + SECONDS
    while len(list(folder.glob("ready-*"))) < PROCESSES:
        if any(future.done() for future in futures) or time.monotonic() > deadline:
            break
        time.sleep(0.005)
    (folder / "go").touch()


def rush(
    gunicorn: App, programs: dict[str, list[str]], arguments: dict[str, str], folder: Path
) -> dict[str, list[tuple[int, int]]]:
    """By language: of each hand its process and how many of its requests passed."""
    with ThreadPoolExecutor(HANDS + len(programs)) as pool:
        asked: Asked = {"python": [pool.submit(ask_worker, gunicorn, arguments) for _ in range(HANDS)]}
        for language, command in programs.items():
            asked[language] = [pool.submit(run_program, command, arguments)]
        start_together(folder, asked)
        return {language: [hand for future in one for hand in future.result()] for language, one in asked.items()}


@contextmanager
def fresh_store(kind: str, redis_store: str) -> Iterator[str]:
    """A store of this run alone: in shared memory, all the programs also come to make its file together."""
    if kind == "shm":
        with shared_memory("rush") as store:
            yield f"{store}&max_keys=1000"
    else:
        yield f"{redis_store}&prefix=rush{uuid.uuid4().hex}"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["shm", "redis"])
def test_exactly_a_thousand_pass_in_three_languages(
    kind: str, policy: str, redis_store: str, gunicorn: App, programs: dict[str, list[str]], tmp_path: Path
) -> None:
    limits = POLICIES[policy]
    for repetition in range(REPETITIONS):
        folder, key = tmp_path / str(repetition), f"canal-{uuid.uuid4()}"
        folder.mkdir()
        with fresh_store(kind, redis_store) as store:
            arguments = {"limits": limits, "store": store, "key": key, "folder": str(folder)}
            hands = rush(gunicorn, programs, {**arguments, "share": str(SHARE), "after": str(AFTER)}, folder)
            left = get(gunicorn, path=f"/left?{urlencode(arguments)}").body

        passed = Counter({language: sum(count for _, count in one) for language, one in hands.items()})
        told = f"repetition {repetition}: {passed.total()} passed: {hands}"
        assert passed.total() == CAPACITY, told
        assert {language: len(one) for language, one in hands.items()} == dict.fromkeys(hands, HANDS), told
        assert min(passed.values()) >= CAPACITY - 2 * HANDS * SHARE, told
        processes = {pid for one in hands.values() for pid, _ in one}
        assert len(processes) == PROCESSES, told
        # In a policy each limit was charged for those that passed and for no others.
        assert left == {"allowed": False, "used": [CAPACITY] * len(limits.split(";"))}, f"{told}: {left}"
