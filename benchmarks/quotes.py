"""Figures that are quoted elsewhere, and must be those of results/*.json.

A quoted figure is followed by a comment that says where it is from:

    41 ns <!-- bench: rust-memory hot mirab.allow ns -->
    1.9 times <!-- bench: rust-memory hot mirab.allow ratio governor-hashmap -->

    CLASS SCENARIO CONTENDER ns               the median
    CLASS SCENARIO CONTENDER ratio PEER       how many times as fast as PEER; `best` is the best peer
    CLASS SCENARIO CONTENDER above OTHER      by how many nanoseconds it is slower than OTHER
    CLASS bytes CONTENDER                     bytes per key
    CLASS fresh CONTENDER p50|p99|max         nanoseconds
    packages sizes NAME                       bytes; NAME as in the file, `-` for a space
    packages loading_ms NAME                  milliseconds, likewise

It must agree in all the digits that it has. The unit is the word after the number: `ns`, `us`, `µs`, `ms`, `kB`, `MB`.

    quotes.py FILE...            says what is wrong
    quotes.py --write FILE...    puts it right, with as many digits as there were
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from environments import BENCH
from measure import Spread, difference, ratio
from protocol import BenchError
from results import PACKAGES, Result

QUOTE = re.compile(r"(?P<number>\d[\d,]*(?:\.\d+)?)(?P<after>[^\d<>|\n]*)<!-- bench: (?P<place>[^>]*?) -->")
UNIT = re.compile(r"\b(?:ns|us|µs|ms|kB|MB)\b")
MARK = re.compile(r"<!-- bench:")
UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6}
BYTES = {"kB": 1e3, "MB": 1e6}


def value(place: str, results: Path) -> tuple[float, dict[str, float]]:
    """What the place says, and the units that it may be written in."""
    try:
        return _value(place.split(), results)
    except (KeyError, IndexError, ValueError, OSError) as wrong:
        raise BenchError(f"{place}: there is no such figure ({wrong!r})") from wrong


def _value(words: list[str], results: Path) -> tuple[float, dict[str, float]]:
    if words[0] == PACKAGES:
        told = json.loads((results / f"{PACKAGES}.json").read_text())[words[1]]
        names = {name.replace(" ", "-"): figure for name, figure in told.items()}
        return names[words[2]], BYTES if words[1] == "sizes" else {"ms": 1.0}
    result = Result.load(results / f"{words[0]}.json")
    match words[1:]:
        case ["bytes", contender]:
            return Spread.of(result.bytes_per_key[contender]).median, {}
        case ["fresh", contender, which]:
            return Spread.of(result.fresh[contender][which]).median, UNITS
        case [scenario, contender, "ns"]:
            return Spread.of(result.ns(scenario, contender)).median, UNITS
        case [scenario, contender, "ratio", peer]:
            theirs = result.best_peer(scenario) if peer == "best" else peer
            return ratio(result.ns(scenario, str(theirs)), result.ns(scenario, contender)).median, {}
        case [scenario, contender, "above", other]:
            return difference(result.ns(scenario, contender), result.ns(scenario, other)).median, UNITS
    raise ValueError("not understood")


def right(quote: re.Match[str], results: Path) -> str:
    """The number as it should stand there, with as many digits after the point."""
    figure, units = value(quote["place"], results)
    found = UNIT.search(quote["after"])
    if units:
        unit = found[0] if found else "no unit"
        if unit not in units:
            raise BenchError(f"{quote['place']}: it is written in {unit}, and must be in {' or '.join(units)}")
        figure /= units[unit]
    digits = len(quote["number"].partition(".")[2])
    return f"{figure:,.{digits}f}" if "," in quote["number"] or figure >= 10_000 else f"{figure:.{digits}f}"


def wrong(text: str, results: Path) -> Iterator[str]:
    """What does not agree."""
    quotes = list(QUOTE.finditer(text))
    if len(quotes) != len(MARK.findall(text)):
        yield "a comment `<!-- bench: ... -->` does not follow a number, with at most a unit between"
    for quote in quotes:
        try:
            if (should := right(quote, results)) != quote["number"]:
                yield f"{quote['place']}: {quote['number']} is written, and {should} was measured"
        except BenchError as error:
            yield str(error)


def corrected(text: str, results: Path) -> str:
    """The text with the figures that were measured."""
    return QUOTE.sub(lambda quote: quote[0].replace(quote["number"], right(quote, results), 1), text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare quoted figures with those that were measured.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="put them right")
    wanted = parser.parse_args()
    found = 0
    for file in wanted.files:
        if wanted.write:
            file.write_text(corrected(file.read_text(), BENCH / "results"))
        for what in wrong(file.read_text(), BENCH / "results"):
            print(f"{file}: {what}", file=sys.stderr)
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
