"""One scenario of every operation, the same answers from Python, Node and C, on memory, in shared memory and on
Redis."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps import INSTALLED, shared_memory

HERE = Path(__file__).resolve().parent
EXPECTED = (HERE / "expected.txt").read_text()


def run(command: list[str], folder: Path = HERE, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(params=["memory", "shm", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """A store that nobody else uses: in memory every limiter has its own, elsewhere each run."""
    if request.param == "memory":
        yield "memory:"
    elif request.param == "shm":
        with shared_memory("operations") as uri:
            yield uri
    else:
        yield f"{request.getfixturevalue('redis_store')}&prefix=o{uuid.uuid4().hex}"


def test_python(store: str) -> None:
    assert run([sys.executable, "operations.py", "scenario.txt", store]) == EXPECTED


def test_node(store: str, tmp_path: Path) -> None:
    (tmp_path / "operations.mjs").write_text((HERE / "operations.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(INSTALLED / "node_http" / "node_modules")
    assert run(["node", "operations.mjs", str(HERE / "scenario.txt"), store], tmp_path) == EXPECTED


def test_c(store: str, tmp_path: Path) -> None:
    prefix = INSTALLED / "c/usr/local"
    found = run(
        ["pkg-config", "--define-prefix", "--cflags", "--libs", "mirab"],
        PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"),
    )
    source, program = str(HERE / "operations.c"), str(tmp_path / "operations")
    run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-o", program, *found.split()])
    assert run([program, "scenario.txt", store], LD_LIBRARY_PATH=str(prefix / "lib")) == EXPECTED
