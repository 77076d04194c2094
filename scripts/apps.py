"""Starts the example apps as their users do, from the packages installed by scripts/install-built.sh, and gives them
a store in shared memory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
INSTALLED = ROOT / ".cache" / "installed"
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
START_SECONDS = 30


# Its standard input ends when we do, in whatever way, so that no file stays behind even when we are killed.
KEEPER = 'cat && rm -f /dev/shm/mirab-*"$0"*'


@contextmanager
def shared_memory(purpose: str) -> Iterator[str]:
    """A store in shared memory that nobody else names; its file is removed in the end, whatever happens."""
    name = f"{purpose}-{uuid.uuid4().hex[:12]}"
    # A session of its own: what ends us in a terminal must not end it.
    with subprocess.Popen(["sh", "-c", KEEPER, name], stdin=subprocess.PIPE, start_new_session=True):
        yield f"shm:{name}?timeout_ms=5000"


@dataclass(frozen=True)
class App:
    """A running example."""

    name: str
    host: str
    port: int


@contextmanager
def flask_app(store: str, limits: str, workers: int = 2, folder: Path = EXAMPLES / "flask_app") -> Iterator[App]:
    """The app of that folder under gunicorn, on a free port."""
    gunicorn = [str(INSTALLED / "venv/bin/python"), "-m", "gunicorn", "--workers", str(workers)]
    command = [*gunicorn, "--bind", "127.0.0.1:0", "--no-control-socket", "app:create_app()"]
    with _running("flask", command, folder, store, limits) as app:
        yield app


@contextmanager
def node_app(name: str, store: str, limits: str, folder: Path | None = None) -> Iterator[App]:
    """The server of that folder on a free port; without one, the installed example of that name."""
    with _running(name, ["node", "server.js"], folder or INSTALLED / name, store, limits) as app:
        yield app


def c_program(source: Path, folder: Path) -> Path:
    """Builds a program of one file in that folder, against the installed library."""
    library = INSTALLED / "c/usr/local/lib"
    flags = subprocess.run(
        ["pkg-config", "--define-prefix", "--cflags", "--libs", "mirab"],
        env={**os.environ, "PKG_CONFIG_PATH": str(library / "pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    program = folder / source.stem
    compiler = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", f"-Wl,-rpath,{library}"]
    subprocess.run([*compiler, str(source), "-o", str(program), *flags], check=True)
    return program


@contextmanager
def _running(name: str, command: list[str], folder: Path, store: str, limits: str) -> Iterator[App]:
    # What is shown and tested is the shared bucket: without it there is no answer.
    settings = {"MIRAB_STORE": store, "MIRAB_LIMITS": limits, "MIRAB_ON_STORE_FAILURE": "raise", "PORT": "0"}
    environment = {**os.environ, **settings}
    with tempfile.NamedTemporaryFile(prefix=f"mirab-{name}-", suffix=".log", mode="a") as log:
        # A session of its own: Ctrl-C reaches only us, and we stop the app. Should we be killed, the kernel does.
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield App(name, "127.0.0.1", _port(name, process, Path(log.name)))
        except Exception:
            print(f"\nwhat the {name} app said:\n{Path(log.name).read_text(errors='replace')}", file=sys.stderr)
            raise
        finally:
            _stop(process)


def _port(name: str, process: subprocess.Popen[bytes], log: Path) -> int:
    """The port that the app says it listens on."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        said = log.read_text(errors="replace")
        if found := ADDRESS.search(said):
            return int(found[1])
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the {name} app did not start")
        time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
