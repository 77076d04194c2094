"""charts/*.svg, from results/*.json alone: one for each class, and one for growth.

    chart.py [FOLDER]       the folder that holds results/; it gets charts/

The same figures give the same bytes. Text stays text, on no background, in greys that are read on white and on black.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from classes import CLASSES
from environments import BENCH
from measure import Spread
from report import GROWTH, is_growth, number
from results import Result, load_all

INK = "#7d8590"
COLOURS = {"mirab": "#1f8fd6", "peer": "#9a7b4f", "floor": "#7d859055", "same": "#1f8fd655"}
LINES = ("#1f8fd6", "#c2743c", "#3a9d5d", "#a15fc4", "#9a7b4f", "#7d8590")
SIZES = {"k": 1_000, "m": 1_000_000}

mpl.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "mirab",
        "font.family": "sans-serif",
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": INK,
        "ytick.color": INK,
        "grid.color": INK,
        "grid.alpha": 0.25,
    }
)


def bars(result: Result) -> Figure:
    """A panel for each scenario, the fastest contender on top."""
    scenarios = [scenario for scenario in result.scenarios() if not is_growth(scenario)]
    heights = [len(result.of(scenario)) for scenario in scenarios]
    figure, panels = plt.subplots(
        len(scenarios),
        1,
        figsize=(8, 0.24 * sum(heights) + 0.42 * len(scenarios) + 0.5),
        sharex=True,
        squeeze=False,
        gridspec_kw={"height_ratios": [height + 0.4 for height in heights]},
        layout="constrained",
    )
    spreads = [Spread.of(ns) for cell, ns in result.cells.items() if not is_growth(cell.scenario)]
    for scenario, panel in zip(scenarios, panels[:, 0]):
        _panel(panel, result, scenario)
        panel.set_xlim(min(it.median for it in spreads) / 2, max(it.high for it in spreads) * 2.5)
    panels[-1, 0].set_xlabel("nanoseconds per decision (logarithmic; less is better): median, quartiles as a line")
    return figure


def _panel(panel: Axes, result: Result, scenario: str) -> None:
    spreads = {it: Spread.of(result.ns(scenario, it)) for it in result.of(scenario)}
    names = sorted(spreads, key=lambda it: spreads[it].median, reverse=True)
    for place, name in enumerate(names):
        at = spreads[name]
        panel.barh(place, at.median, color=COLOURS[result.kind(name)], height=0.72)
        panel.plot([at.low, at.high], [place, place], color=INK, linewidth=1.2)
        panel.text(max(at.median, at.high) * 1.06, place, number(at.median), va="center", fontsize=8)
    panel.set_xscale("log")
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(-0.6, len(names) - 0.4)
    panel.set_title(scenario, loc="left", fontsize=9, fontweight="bold")
    panel.tick_params(axis="y", length=0)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.grid(axis="x")
    panel.set_axisbelow(True)


def lines(found: dict[str, Result]) -> Figure:
    """A panel for keys and one for limits, a line for each contender of each class."""
    figure, panels = plt.subplots(1, len(GROWTH), figsize=(8, 3.4), squeeze=False, layout="constrained")
    for panel, (prefix, what) in zip(panels[0], GROWTH.items()):
        grown = [
            (f"{name.partition('-')[0]}: {contender}", points)
            for name, result in found.items()
            for contender, points in _points(result, prefix).items()
        ]
        for (label, points), colour in zip(grown, LINES):
            panel.plot(*zip(*points), marker="o", markersize=3, linewidth=1.4, color=colour, label=label)
        if prefix == "growth_keys_":
            panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_xlabel(what)
        panel.grid(visible=True)
        if grown:
            panel.legend(frameon=False, fontsize=8)
    panels[0, 0].set_ylabel("nanoseconds per decision")
    return figure


def _points(result: Result, prefix: str) -> dict[str, list[tuple[int, float]]]:
    points: dict[str, list[tuple[int, float]]] = {}
    for cell, ns in result.cells.items():
        if cell.scenario.startswith(prefix):
            points.setdefault(cell.contender, []).append(
                (count(cell.scenario.removeprefix(prefix)), Spread.of(ns).median)
            )
    return points


def count(text: str) -> int:
    """`100k` as a number."""
    return int(text[:-1]) * SIZES[text[-1]] if text[-1] in SIZES else int(text)


def save(figure: Figure, file: Path) -> None:
    """Without a date, and without the spaces that the writer leaves at the ends of lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    file.write_text("".join(line.rstrip() + "\n" for line in file.read_text().splitlines()))


def main() -> None:
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else BENCH
    found = load_all(folder / "results", [of.name for of in CLASSES])
    for name, result in found.items():
        save(bars(result), folder / "charts" / f"{name}.svg")
    if any(is_growth(scenario) for result in found.values() for scenario in result.scenarios()):
        save(lines(found), folder / "charts" / "growth.svg")


if __name__ == "__main__":
    main()
