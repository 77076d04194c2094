"""Builds mirab as it is shipped, and puts it beside its peers: each worker's environment, as a command that starts it.

What is built stands in .cache/bench; what is there and still right is not built again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from protocol import BenchError, Command

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "benchmarks"
CACHE = ROOT / ".cache" / "bench"
DIST = CACHE / "dist"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PIP_INSTALL = ("install", "--quiet", "--disable-pip-version-check")
NPM = ("npm", "--silent", "--no-audit", "--no-fund")


def run(what: str, *argv: str | Path, folder: Path = ROOT, **environment: str) -> None:
    """Runs it without a word, or with all its words when it fails."""
    try:
        done = subprocess.run(
            [str(part) for part in argv],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as missing:
        raise BenchError(f"{what}: {missing}") from missing
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise BenchError(f"{what} failed, as {argv[0]} says above")


def say(what: str) -> None:
    """What takes a while, on stderr."""
    print(f"bench: {what}", file=sys.stderr, flush=True)


def stamped(stamp: Path, files: Iterable[Path]) -> bool:
    """Whether the files are those of that stamp."""
    return stamp.exists() and stamp.read_text() == _sum(files)


def write_stamp(stamp: Path, files: Iterable[Path]) -> None:
    """For `stamped` to find."""
    stamp.write_text(_sum(files))


def _sum(files: Iterable[Path]) -> str:
    sums = hashlib.sha256()
    for file in files:
        sums.update(file.read_bytes())
    return sums.hexdigest()


def one(pattern: str) -> Path:
    """The one file of that name in DIST."""
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise BenchError(f"{DIST} should hold one {pattern}, and holds {len(found)}: remove it")
    return found[0]


@functools.cache
def rust() -> Command:
    """The worker in Rust, with the crate from its sources."""
    say("building the Rust worker")
    manifest = BENCH / "rust/Cargo.toml"
    run("the Rust worker", "cargo", "build", "--quiet", "--locked", "--release", "--manifest-path", manifest,
        CARGO_TARGET_DIR=str(TARGET))  # fmt: skip
    return Command("rust", [str(TARGET / "release/mirab-bench")], BENCH / "rust")


@functools.cache
def python() -> Command:
    """The worker in Python: the wheel, and the peers, in a venv."""
    say("building the wheel")
    run("the wheel", "make", "-C", "bindings-python", "dist", f"DIST={DIST}", f"PYTHON={sys.executable}")
    venv = _venv("python", BENCH / "python/requirements.txt")
    wheel = one("mirab-*.whl")
    stamp = CACHE / "python.wheel.stamp"
    if not stamped(stamp, [wheel]):
        run("installing the wheel", venv / "bin/pip", *PIP_INSTALL, "--no-deps", "--force-reinstall", wheel)
        write_stamp(stamp, [wheel])
    return Command("python", [str(venv / "bin/python"), "worker.py"], BENCH / "python")


@functools.cache
def node() -> Command:
    """The worker in Node: the npm packages beside the peers."""
    say("building the npm packages")
    for old in DIST.glob("mirab-*.tgz"):
        old.unlink()
    run("the npm packages", "make", "-C", "bindings-node", "dist", f"DIST={DIST}", f"STAGE={CACHE / 'npm'}")
    folder = BENCH / "node"
    packages = [one("mirab-[0-9]*.tgz"), one("mirab-linux-*.tgz")]
    stamp = folder / "node_modules/.bench.stamp"
    wanted = [folder / "package-lock.json", *packages]
    if not stamped(stamp, wanted):
        say("installing the peers of the Node class")
        run("npm ci", *NPM, "ci", folder=folder)
        run("installing the npm packages", *NPM, "install", "--no-save", *packages, folder=folder)
        write_stamp(stamp, wanted)
    return Command("node", ["node", "worker.mjs"], folder)


@functools.cache
def c() -> Command:
    """The worker in C, against an installed copy of the library."""
    say("building the C library and its worker")
    root = CACHE / "c"
    run(
        "the C library",
        "make",
        "-C",
        "bindings-c",
        "install",
        "PROFILE=release",
        f"DESTDIR={root}",
        "PREFIX=/usr/local",
    )
    prefix = root / "usr/local"
    flags = subprocess.run(
        ["pkg-config", "--define-prefix", "--cflags", "--libs", "mirab"],
        env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    worker = root / "worker"
    strict = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    run("the C worker", "cc", *strict, BENCH / "c/worker.c", "-o", worker, *flags, f"-Wl,-rpath,{prefix / 'lib'}")
    return Command("c", [str(worker)], BENCH / "c")


def charts() -> Path:
    """A Python that can draw."""
    return _venv("charts", BENCH / "requirements.txt") / "bin/python"


def _venv(name: str, requirements: Path) -> Path:
    venv = CACHE / name
    if not stamped(venv / "stamp", [requirements]):
        say(f"installing {requirements.relative_to(ROOT)}")
        run("a venv", sys.executable, "-m", "venv", "--clear", venv)
        (CACHE / f"{name}.wheel.stamp").unlink(missing_ok=True)
        run("pip", venv / "bin/pip", *PIP_INSTALL, "-r", requirements)
        write_stamp(venv / "stamp", [requirements])
    return venv
