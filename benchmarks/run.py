"""Measures mirab beside its peers, and writes down what it found.

    make bench                                 every class, and the packages
    make bench ONLY="rust-memory packages"     some of them
    make bench ROUNDS=3 SLOT=5                 a quick look

A run of fewer than 11 rounds is kept apart, in .cache/bench/quick: its figures are not worth keeping.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import environments
import measure
import packages
import report
import results
from classes import CLASSES, Class
from environments import BENCH, CACHE, ROOT, say
from measure import Seat
from protocol import KINDS, BenchError, Cell, Command, Hello, Worker, ask_once
from results import PACKAGES, Result

ROUNDS, LEAST_ROUNDS, SLOT_MS = 21, 11, 30.0
# Keys and processes of what is measured alone.
ALONE = (1_000_000, 3)
QUICK = (100_000, 1)
BUSY = 0.5


def machine() -> dict[str, str]:
    """What the figures depend on, and nothing that names the machine."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return {
        "cpu": cpus[0].partition(": ")[2] if cpus else platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": system,
        "kernel": platform.release(),
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def rustc() -> dict[str, str]:
    """The compiler of everything that is built here."""
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
    return {"rustc": said.split()[1]}


def in_order(hello: Hello) -> dict[str, dict[str, str]]:
    """The contenders by kind, and those of a kind as they first stand in a cell."""
    seen = list(dict.fromkeys([*(cell.contender for cell in hello.cells), *hello.contenders]))
    return {it: hello.contenders[it] for kind in KINDS for it in seen if hello.contenders[it]["kind"] == kind}


def seats(worker: Worker, of: Class, beside: Worker | None) -> dict[Cell, Seat]:
    """The cells of the class's own worker, each scenario followed by the other's."""
    there = {cell: Seat(worker, cell) for cell in worker.hello.cells}
    if beside and of.beside:
        for cell in filter(of.beside.takes, beside.hello.cells):
            there[Cell(cell.scenario, of.beside.prefix + cell.contender)] = Seat(beside, cell)
    return there


def alone(command: Command, hello: Hello, count: int, runs: int, result: Result) -> None:
    """Bytes per key and fresh keys: each in processes of its own."""
    say(f"{result.name}: {count:,} keys, in {runs * (len(hello.bytes) + len(hello.fresh))} processes")
    result.keys = count
    keys = str(count)
    for contender in hello.bytes:
        found = [ask_once(command, "--bytes", contender, keys)["bytes_per_key"] for _ in range(runs)]
        result.bytes_per_key[contender] = found
    for contender in hello.fresh:
        times = [ask_once(command, "--fresh", contender, keys) for _ in range(runs)]
        result.fresh[contender] = {name: [time[name] for time in times] for name in ("p50", "p99", "max", "ns")}


def run_class(of: Class, rounds: int, slot_ms: float) -> Result:
    """Builds, measures, and gives what was found."""
    command = of.worker()
    other = of.beside.worker() if of.beside else None
    with contextlib.ExitStack() as stack:
        worker = stack.enter_context(Worker(command))
        beside = stack.enter_context(Worker(other)) if other else None
        if worker.hello.name != of.name:
            raise BenchError(f'worker {command.name}: it is of the class "{worker.hello.name}", not {of.name}')
        hello = worker.hello
        result = Result(
            name=of.name,
            title=of.title,
            date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            command=f"make bench ONLY={of.name} ROUNDS={rounds} SLOT={slot_ms:g}",
            rounds=rounds,
            slot_ms=slot_ms,
            machine=machine(),
            versions=rustc() | hello.versions,
            contenders=in_order(hello),
        )
        if of.beside:
            about = {"kind": "same", "note": "the same call from Rust, in the same rounds"}
            result.contenders |= {of.beside.prefix + contender: about for contender in of.beside.contenders}
        cells = seats(worker, of, beside)
        say(f"{of.name}: {len(cells)} cells, {rounds} rounds")
        result.cells = measure.measure(cells, rounds, slot_ms, _tell(of.name, rounds))
    alone(command, hello, *(ALONE if rounds >= LEAST_ROUNDS else QUICK), result)
    return result


def _tell(name: str, rounds: int) -> Callable[[int], None]:
    begun = time.monotonic()

    def done(number: int) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[Kbench: {name}: round {number} of {rounds}", end="", file=sys.stderr, flush=True)
        if number == rounds:
            print("\r\x1b[K" if sys.stderr.isatty() else "", end="", file=sys.stderr)
            say(f"{name}: measured in {time.monotonic() - begun:.0f} s")

    return done


def names(only: Sequence[str]) -> list[str]:
    """Those asked for, in the house's order."""
    there = [of.name for of in CLASSES] + [PACKAGES]
    if unknown := [name for name in only if name not in there]:
        raise BenchError(f"no class is called {' or '.join(unknown)}: there are {', '.join(there)}")
    return [name for name in there if not only or name in only]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure mirab beside its peers.")
    parser.add_argument("--only", nargs="+", default=[], help="some classes only")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--slot", type=float, default=SLOT_MS, metavar="MS", help="how long one slot takes")
    wanted = parser.parse_args()
    if wanted.rounds < 1 or wanted.slot <= 0:
        raise BenchError(f"{wanted.rounds} rounds of {wanted.slot:g} ms: both must be above 0")

    keep = wanted.rounds >= LEAST_ROUNDS
    folder = BENCH if keep else CACHE / "quick"
    chosen = names(wanted.only)
    if os.getloadavg()[0] > BUSY:
        say(f"something else runs here (load {os.getloadavg()[0]:.2f}): the figures will spread")
    CACHE.mkdir(parents=True, exist_ok=True)
    for of in CLASSES:
        if of.name in chosen:
            result = run_class(of, wanted.rounds, wanted.slot)
            result.save(folder / "results")
    if PACKAGES in chosen:
        results.save(folder / "results" / f"{PACKAGES}.json", packages.measure())
    report.write(folder)
    environments.run("the charts", environments.charts(), BENCH / "chart.py", folder)
    say(f"{(folder / 'RESULTS.md').relative_to(ROOT)} is written")


if __name__ == "__main__":
    try:
        main()
    except BenchError as wrong:
        print(f"bench: {wrong}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
