"""Runs every gate and every test of the house, one step after the other, and counts what ran.

    scripts/test.py                 everything
    scripts/test.py lint core       only the steps whose name begins so
    scripts/test.py --soak          the scenes that gain from repetition, many more times

A failed step does not stop the others. The last line is `N passed, N failed`; the exit code says the same.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = ROOT / ".cache" / "installed"
WITH_REDIS = "scripts/with-redis.sh"
PYTEST = f"{INSTALLED}/venv/bin/python -m pytest -q -p no:cacheprovider"

# How each runner says what it counted. The plain form is what the C programs print, one line a program.
COUNTS = (
    re.compile(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed"),  # cargo test
    re.compile(r"^(?:# |ℹ )pass (?P<passed>\d+)$"),  # node --test
    re.compile(r"^(?:# |ℹ )fail (?P<failed>\d+)$"),
    re.compile(r"^(?:[\w.-]+: )?(?P<passed>\d+) passed, (?P<failed>\d+) failed$"),
)
PYTEST_END = re.compile(r"^(?:=+ )?(?:\d+ \w+, )*\d+ (?:passed|failed|errors?)\b.* in [\d.]+s")
PYTEST_PART = re.compile(r"(\d+) (passed|failed|errors?)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Step:
    name: str
    command: str
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)

    def count(self, line: str) -> None:
        line = COLOUR.sub("", line).strip()
        if PYTEST_END.match(line):
            for number, what in PYTEST_PART.findall(line):
                if what == "passed":
                    self.passed += int(number)
                else:
                    self.failed += int(number)
            return
        for pattern in COUNTS:
            if match := pattern.match(line):
                found = match.groupdict()
                self.passed += int(found.get("passed") or 0)
                self.failed += int(found.get("failed") or 0)
                return

    def run(self) -> None:
        print(f"\n--- {self.name}: {self.command}", flush=True)
        begun = time.monotonic()
        with subprocess.Popen(
            ["bash", "-c", self.command],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            try:
                for line in process.stdout or ():
                    sys.stdout.write(line)
                    sys.stdout.flush()
                    self.count(line)
            except KeyboardInterrupt:
                process.wait()
                raise
        self.seconds = time.monotonic() - begun
        if process.returncode != 0 and self.failed == 0:
            self.failed = 1
        elif process.returncode == 0 and self.passed == 0:
            self.passed = 1  # a gate counts nothing itself


def binding(verb: str, name: str) -> str:
    return f"make -C bindings-{name} {verb}"


def deny_step() -> list[Step]:
    """cargo-deny takes minutes to build, so it is run where it is, and asked for with `make deny`."""
    if shutil.which("cargo-deny") or (ROOT / ".cache/tools/bin/cargo-deny").exists():
        return [Step("lint-deny", "scripts/deny.sh")]
    print("lint-deny: left out, since cargo-deny is not installed (`make deny` does that)", flush=True)
    return []


def server_steps() -> list[Step]:
    """The script and its layout on every server that is promised; Debian's Redis has all the other tests."""
    tests = "--test layout --test redis --test doors --test keys --test health --test vectors --test agreement"
    return [
        Step(
            f"core-{server}",
            f"{WITH_REDIS} cargo test --quiet --locked -p mirab --all-features {tests} -- --skip memory --skip shm",
            environment={"MIRAB_REDIS_SERVER": f".cache/servers/{server}", "MIRAB_STEPS_REDIS": "4000"},
        )
        for server in ("redis-6.2", "valkey-8.1")
    ]


def every_step() -> list[Step]:
    house = "scripts tests examples benchmarks"
    bench = "--manifest-path benchmarks/rust/Cargo.toml"
    return [
        Step("lint-rustfmt", "cargo fmt --all --check"),
        Step(
            "lint-clippy",
            "cargo clippy --quiet --locked --workspace --all-targets --all-features -- -D warnings",
        ),
        Step("lint-ruff", f"ruff check --quiet {house} && ruff format --quiet --check {house}"),
        Step(
            "lint-bench",
            f"cargo fmt {bench} --check && cargo clippy --quiet --locked {bench} -- -D warnings"
            " && cd benchmarks && python -m mypy --strict run.py report.py quotes.py",
        ),
        Step("lint-python", binding("lint", "python")),
        Step("lint-node", binding("lint", "node")),
        Step("lint-c", binding("lint", "c")),
        Step("lint-generated", "scripts/check-generated.sh"),
        *deny_step(),
        Step("core", f"{WITH_REDIS} cargo test --quiet --locked -p mirab --all-features"),
        *server_steps(),
        Step("dist", "make dist"),
        Step("instructions", "python scripts/instructions.py"),
        Step("python", f"{WITH_REDIS} {binding('test', 'python')}"),
        Step("node", f"{WITH_REDIS} {binding('test', 'node')}"),
        Step("c", f"{WITH_REDIS} {binding('test', 'c')}"),
        Step("installed", "scripts/install-built.sh python node c"),
        Step("house", f"{WITH_REDIS} {PYTEST} tests"),
    ]


def soak_steps() -> list[Step]:
    many = {
        "MIRAB_REPETITIONS": "500",
        "MIRAB_STEPS": "1000000",
        "MIRAB_STEPS_REDIS": "200000",
        "MIRAB_KEYS": "200000",
        "MIRAB_FRESH_KEYS": "5000000",
        "MIRAB_OUTAGE_MS": "5000",
        "MIRAB_ATTEMPTS": "1000000",
        "MIRAB_DECISIONS": "200000",
        "MIRAB_FUZZ": "1000000",
        "MIRAB_KILL_SECONDS": "600",
        "MIRAB_ROUNDS": "200",
        "MIRAB_TURNS": "1",
    }
    crowds = "tests/servers/test_exactness.py tests/servers/test_shared_memory.py"
    return [
        Step(
            "core",
            f"{WITH_REDIS} cargo test --quiet --locked --release -p mirab --all-features",
            environment=many,
        ),
        Step("sanitized-address", f"{WITH_REDIS} scripts/sanitize.sh address"),
        Step("sanitized-thread", f"{WITH_REDIS} scripts/sanitize.sh thread"),
        Step("dist", "make dist"),
        Step("installed", "scripts/install-built.sh python node c"),
        Step("exactness", f"{WITH_REDIS} {PYTEST} {crowds}", environment=many),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the gates and tests of the house.")
    parser.add_argument("steps", nargs="*", help="the beginning of the names of the steps to run")
    parser.add_argument("--soak", action="store_true", help="the long runs instead")
    wanted = parser.parse_args()

    steps = soak_steps() if wanted.soak else every_step()
    if wanted.steps:
        steps = [step for step in steps if step.name.startswith(tuple(wanted.steps))]
        if not steps:
            names = ", ".join(step.name for step in every_step())
            parser.error(f"no step begins with {' or '.join(wanted.steps)}: there are {names}")

    for step in steps:
        step.run()

    print()
    for step in steps:
        verdict = "failed" if step.failed else "passed"
        print(f"{step.name:<16} {verdict}  {step.passed:>5} / {step.passed + step.failed:<5} {step.seconds:7.1f} s")
    failed = sum(step.failed for step in steps)
    print(f"\n{sum(step.passed for step in steps)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
