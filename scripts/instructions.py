"""Counts the instructions of each operation and compares them with the ceilings in core/benches/instructions.toml.

    scripts/instructions.py              every scene of core/benches/scenes and of bindings-c/benches
    scripts/instructions.py limiter/     only the scenes whose name begins so
    scripts/instructions.py --write      writes the ceilings anew: half as many again as are counted now

Time is noise on a shared machine, instructions are not: a change that makes a path longer is seen here. Valgrind
counts what the programs' function `repeated` does in TIMES repetitions, without what makes a scene ready. Under
valgrind the system's clock is asked by a system call, whose own instructions are not counted.

A scene without a ceiling, or a ceiling without a scene, has failed. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "core" / "benches" / "instructions.toml"
BUILD = "cargo build --quiet --locked --release -p mirab-instructions --message-format json"
BUILD_C = "make --silent --no-print-directory -C bindings-c instructions"
VALGRIND = "valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=*repeated*"

# Just grown past the last doubling of a table: so often as new keys make it grow in the long run.
TIMES = 8_000

HEADER = """\
# The most instructions that an operation may take. Lower is fine; to allow more is a decision.
# Written by: scripts/instructions.py --write
"""


def built() -> list[str]:
    """Builds the programs that repeat scenes; where they are."""
    messages = map(json.loads, said(*BUILD.split()))
    is_ours = (it["executable"] for it in messages if it.get("target", {}).get("name") == "instructions")
    return [str(next(is_ours)), said(*BUILD_C.split())[-1]]


def said(*command: str) -> list[str]:
    """The lines of what it says; without it there is nothing to count."""
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"instructions: {' '.join(command)}: failed")
    return run.stdout.splitlines()


def each(program: str, scene: str) -> int:
    """How many instructions one repetition takes."""
    command = [*VALGRIND.split(), program, scene, str(TIMES)]
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    total = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or total is None:
        said = "\n".join(line for line in run.stderr.splitlines() if not line.startswith(("==", "--")))
        raise SystemExit(f"instructions: {' '.join(command)}\n{said}")
    return round(int(total[1]) / TIMES)


def measured(scenes: list[tuple[str, str]]) -> dict[str, int]:
    """How many each takes: scenes are a program and a name."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = pool.map(lambda scene: each(*scene), scenes)
        return {name: count for (_, name), count in zip(scenes, counts)}


def read_table() -> dict[str, int]:
    """The ceilings: sections that hold names and whole numbers, no more of TOML than that."""
    ceilings, group = {}, ""
    for number, line in enumerate(TABLE.read_text().splitlines() if TABLE.exists() else [], start=1):
        if match := re.fullmatch(r"\[(\w+)\]", line):
            group = match[1]
        elif match := re.fullmatch(r"(\w+) = (\d+)", line):
            ceilings[f"{group}/{match[1]}"] = int(match[2])
        elif line and not line.startswith("#"):
            sys.exit(f"{TABLE.relative_to(ROOT)}:{number}: {line!r}: write [GROUP] or SCENE = NUMBER")
    return ceilings


def write_table(counts: dict[str, int]) -> None:
    text, last = HEADER, ""
    for scene, count in counts.items():
        group, name = scene.split("/")
        if group != last:
            text += f"\n[{group}]\n"
            last = group
        text += f"{name} = {ceiling(count)}\n"
    TABLE.write_text(text)


def ceiling(count: int) -> int:
    """Half as many again, to the next ten."""
    return -(-count * 3 // 20) * 10


def compare(counts: dict[str, int], ceilings: dict[str, int]) -> int:
    """Prints the table; how many scenes failed."""
    print(f"{'':<42} {'count':>8} {'ceiling':>8}")
    failed = 0
    for scene in dict.fromkeys([*counts, *ceilings]):
        count, most = counts.get(scene), ceilings.get(scene)
        if count is None:
            fault = "there is no such scene: take the line out"
        elif most is None:
            fault = "no ceiling: scripts/instructions.py --write"
        else:
            fault = "" if count <= most else f"{count - most} too many"
        failed += bool(fault)
        print(f"{scene:<42} {count or '-':>8} {most or '-':>8}  {fault}".rstrip())
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the instructions of each operation.")
    parser.add_argument("scenes", nargs="*", help="the beginning of the names of the scenes to count")
    parser.add_argument("--write", action="store_true", help="write the ceilings anew")
    wanted = parser.parse_args()
    if wanted.write and wanted.scenes:
        parser.error("--write writes the whole table: name no scenes")

    scenes = [(program, name) for program in built() for name in said(program)]
    chosen = tuple(wanted.scenes) or ("",)
    counts = measured([scene for scene in scenes if scene[1].startswith(chosen)])
    if wanted.write:
        write_table(counts)
    ceilings = {scene: most for scene, most in read_table().items() if scene.startswith(chosen)}
    failed = compare(counts, ceilings)
    print(f"\n{len({*counts, *ceilings}) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
