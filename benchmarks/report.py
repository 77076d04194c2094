"""RESULTS.md, from results/*.json alone.

report.py [FOLDER]      the folder that holds results/; it gets RESULTS.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from classes import CLASSES
from environments import BENCH
from measure import Spread, difference, ratio
from results import PACKAGES, Result, load_all

GROWTH = {"growth_keys_": "keys", "growth_limits_": "limits on one key"}
KINDS = {"mirab": "mirab", "peer": "a peer", "floor": "a floor", "same": "mirab, from Rust"}


def number(value: float) -> str:
    """Three figures, in full."""
    digits = 2 if abs(value) < 1 else 1 if abs(value) < 10 else 0
    return f"{value:,.{digits}f}"


def spread(of: Spread, sign: str = "") -> str:
    """A median between its quartiles."""
    return f"{number(of.median)}{sign} [{number(of.low)}–{number(of.high)}]"


def times(of: Spread) -> str:
    """A ratio."""
    return f"{of.median:.2f}× [{of.low:.2f}–{of.high:.2f}]"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; all but the first column are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def is_growth(scenario: str) -> bool:
    """Those have a section of their own."""
    return scenario.startswith(tuple(GROWTH))


def figures(result: Result) -> str:
    """Nanoseconds of every contender in every scenario."""
    scenarios = [scenario for scenario in result.scenarios() if not is_growth(scenario)]
    present = {cell.contender for cell in result.cells if cell.scenario in scenarios}
    contenders = [name for name in result.contenders if name in present]
    rows = [
        [scenario]
        + [spread(Spread.of(result.ns(scenario, it))) if it in result.of(scenario) else "" for it in contenders]
        for scenario in scenarios
    ]
    return "Nanoseconds per decision, median [quartiles]:\n\n" + table(["scenario", *contenders], rows)


def ours(result: Result) -> list[str]:
    """The faces of mirab."""
    return [name for name in result.contenders if result.kind(name) == "mirab"]


def against(result: Result) -> str:
    """How many times faster than the best peer."""
    rows = [
        [scenario, peer, *_beside(result, scenario, peer, faster=True)]
        for scenario in result.scenarios()
        if not is_growth(scenario) and (peer := result.best_peer(scenario))
    ]
    if not rows:
        return ""
    return "How many times as fast as the best peer; below 1 the peer is faster:\n\n" + table(
        ["scenario", "best peer", *ours(result)], rows
    )


def floors(result: Result) -> str:
    """How many times as long as what cannot be beaten."""
    rows = [
        [scenario, floor, *_beside(result, scenario, floor, faster=False)]
        for scenario in result.scenarios()
        if not is_growth(scenario)
        for floor in result.of(scenario, "floor")
    ]
    if not rows:
        return ""
    return "How many times as long as the floors, which do less than a limiter must:\n\n" + table(
        ["scenario", "floor", *ours(result)], rows
    )


def _beside(result: Result, scenario: str, other: str, *, faster: bool) -> list[str]:
    """Each face's ratio to the other: how many times as fast, or as long."""
    theirs = result.ns(scenario, other)
    ratios = []
    for it in ours(result):
        if it in result.of(scenario):
            mine = result.ns(scenario, it)
            ratios.append(times(ratio(theirs, mine) if faster else ratio(mine, theirs)))
        else:
            ratios.append("")
    return ratios


def same_calls(result: Result) -> str:
    """What the language costs above the same call from Rust."""
    rows = [
        [cell.scenario, cell.contender, spread(difference(ns, result.cells[rust]), " ns")]
        for cell, ns in result.cells.items()
        if (rust := cell._replace(contender=f"rust:{cell.contender}")) in result.cells
    ]
    if not rows:
        return ""
    return "Above the same call from Rust, in the same rounds:\n\n" + table(["scenario", "call", "above"], rows)


def policies(result: Result) -> str:
    """Three limits beside one."""
    if not {"policy_1", "policy_3"} <= set(result.scenarios()):
        return ""
    rows = [
        [it, times(ratio(result.ns("policy_3", it), result.ns("policy_1", it)))]
        for it in result.of("policy_3")
        if it in result.of("policy_1")
    ]
    return "Three limits, beside one:\n\n" + table(["call", "three limits"], rows)


def growth(result: Result) -> str:
    """What happens when there are more keys, and more limits."""
    parts = []
    for prefix, what in GROWTH.items():
        scenarios = [scenario for scenario in result.scenarios() if scenario.startswith(prefix)]
        if not scenarios:
            continue
        rows = [
            [it] + [number(Spread.of(result.ns(scenario, it)).median) for scenario in scenarios]
            for it in result.of(scenarios[0])
        ]
        head = [what, *(scenario.removeprefix(prefix) for scenario in scenarios)]
        parts.append("Nanoseconds per decision, by the number of " + f"{what}:\n\n" + table(head, rows))
    return "\n".join(parts)


def memory(result: Result) -> str:
    """Bytes per key, beside the smallest peer."""
    if not result.bytes_per_key:
        return ""
    peer = result.smallest_peer()
    rows = []
    for it, values in result.bytes_per_key.items():
        beside = Spread.of(values).median / Spread.of(result.bytes_per_key[peer]).median if peer else None
        rows.append([it, spread(Spread.of(values)), f"{beside:.2f}×" if beside else ""])
    return f"Bytes per key, {result.keys:,} keys of 16 bytes:\n\n" + table(
        ["", "bytes", "beside the smallest peer"], rows
    )


def fresh(result: Result) -> str:
    """How long a key waits that was never seen."""
    if not result.fresh:
        return ""
    rows = [
        [it, *(number(Spread.of(found[name]).median) for name in ("p50", "p99", "max"))]
        for it, found in result.fresh.items()
    ]
    title = f"Nanoseconds of one decision for a new key, while {result.keys:,} come, one reading of the clock included:"
    return f"{title}\n\n" + table(["", "p50", "p99", "max"], rows)


def contenders(result: Result) -> str:
    """Who they are, and what each does not do."""
    lines = [
        f"- `{name}` ({KINDS[about['kind']]})" + (f": {about['note']}" if about.get("note") else "")
        for name, about in result.contenders.items()
    ]
    return "\n".join(lines) + "\n"


def section(result: Result) -> str:
    """All of one class."""
    facts = ", ".join(f"{name} {value}" for name, value in result.versions.items())
    machine = ", ".join(f"{name} {value}" for name, value in result.machine.items())
    parts = [
        f"## {result.title}\n",
        f"![{result.title}: nanoseconds per decision](charts/{result.name}.svg)\n",
        figures(result),
        against(result),
        floors(result),
        same_calls(result),
        policies(result),
        growth(result),
        memory(result),
        fresh(result),
        contenders(result),
        f"{result.date}, {result.rounds} rounds of {result.slot_ms:g} ms: `{result.command}`  \n{facts}  \n{machine}\n",
    ]
    return "\n".join(part for part in parts if part)


def packages(told: dict[str, dict[str, float]]) -> str:
    """Sizes and loading."""
    sizes = [[what, f"{size / 1e6:.2f} MB"] for what, size in told["sizes"].items()]
    loading = [[f"`{what}`", f"{ms:.1f} ms"] for what, ms in told["loading_ms"].items()]
    return "## Packages\n\n" + table(["", "size"], sizes) + "\n" + table(["", "time"], loading)


def write(folder: Path) -> None:
    """RESULTS.md of what was measured there."""
    found = load_all(folder / "results", [of.name for of in CLASSES])
    parts = [
        "# Results\n\nMade by `make bench`; how it measures, and what the scenarios are: [README.md](README.md). Only"
        " what stands in one row was measured at the same time, and can be compared.\n"
    ]
    parts += [section(result) for result in found.values()]
    if any(is_growth(scenario) for result in found.values() for scenario in result.scenarios()):
        parts.insert(1, "![Growth: nanoseconds per decision by the number of keys and of limits](charts/growth.svg)\n")
    if (file := folder / "results" / f"{PACKAGES}.json").exists():
        parts.append(packages(json.loads(file.read_text())))
    (folder / "RESULTS.md").write_text("\n".join(parts))


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else BENCH)
