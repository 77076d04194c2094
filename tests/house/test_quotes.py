"""Figures in the documentation are those that were measured: see benchmarks/quotes.py."""

from __future__ import annotations

from pathlib import Path

import pytest

import quotes
from apps import ROOT
from protocol import Cell
from results import Result, save

PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted(ROOT.glob("docs/*.md"))),
         *(f"{part}/README.md" for part in ("core", "bindings-python", "bindings-node", "bindings-c"))]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_what_is_quoted_was_measured(page: str) -> None:
    assert list(quotes.wrong((ROOT / page).read_text(), ROOT / "benchmarks/results")) == []


@pytest.fixture
def results(tmp_path: Path) -> Path:
    Result(
        name="some-memory",
        title="Some",
        date="2026-01-01",
        command="make bench",
        rounds=3,
        slot_ms=30.0,
        machine={},
        versions={},
        contenders={"mirab": {"kind": "mirab"}, "slow": {"kind": "peer"}, "slower": {"kind": "peer"}},
        cells={
            Cell("hot", "mirab"): [40.0, 41.4, 42.0],
            Cell("hot", "slow"): [80.0, 76.59, 84.0],
            Cell("hot", "slower"): [51_250.0, 51_234.0, 51_211.0],
        },
        bytes_per_key={"mirab": [33.6]},
        fresh={"mirab": {"p50": [40.0], "p99": [320.0], "max": [91_000.0]}},
    ).save(tmp_path)
    save(tmp_path / "packages.json", {"sizes": {"wheel, unpacked": 4_210_000}, "loading_ms": {"import mirab": 3.52}})
    return tmp_path


RIGHT = [
    "41 ns <!-- bench: some-memory hot mirab ns -->",
    "about **41.4 ns** <!-- bench: some-memory hot mirab ns -->",
    "| 0.04 µs <!-- bench: some-memory hot mirab ns --> | 51,230 ns <!-- bench: some-memory hot slower ns --> |",
    "51 us <!-- bench: some-memory hot slower ns -->",
    "2.0 times <!-- bench: some-memory hot mirab ratio slow --> as fast",
    "2× <!-- bench: some-memory hot mirab ratio best -->",
    "40 ns <!-- bench: some-memory hot slow above mirab -->",
    "34 bytes <!-- bench: some-memory bytes mirab -->",
    "91 us <!-- bench: some-memory fresh mirab max -->",
    "4.2 MB <!-- bench: packages sizes wheel,-unpacked -->",
    "4 ms <!-- bench: packages loading_ms import-mirab -->",
    "no figure at all, and 17 things",
]  # fmt: skip


@pytest.mark.parametrize("text", RIGHT)
def test_what_agrees_in_all_its_digits_is_right(text: str, results: Path) -> None:
    assert list(quotes.wrong(text, results)) == []
    assert quotes.corrected(text, results) == text


@pytest.mark.parametrize(
    ("text", "told", "put_right"),
    [
        ("42 ns <!-- bench: some-memory hot mirab ns -->", "42 is written, and 41 was measured", "41 ns"),
        ("3 to 40.0 ns <!-- bench: some-memory hot mirab ns -->", "and 41.4 was measured", "3 to 41.4 ns"),
        ("2.1× <!-- bench: some-memory hot mirab ratio best -->", "and 2.0 was measured", "2.0×"),
    ],
)
def test_what_does_not_agree_is_told_and_put_right(text: str, told: str, put_right: str, results: Path) -> None:
    [what] = quotes.wrong(text, results)
    assert told in what
    assert quotes.corrected(text, results).startswith(put_right)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("41 ns <!-- bench: some-memory hot nobody ns -->", "has no cell hot of nobody"),
        ("41 ns <!-- bench: other-memory hot mirab ns -->", "there is no such figure"),
        ("41 ns <!-- bench: some-memory hot -->", "there is no such figure"),
        ("41 MB <!-- bench: some-memory hot mirab ns -->", "it is written in MB, and must be in ns or us or µs or ms"),
        ("41 <!-- bench: some-memory hot mirab ns -->", "it is written in no unit"),
        ("fast <!-- bench: some-memory hot mirab ns -->", "does not follow a number"),
    ],
)
def test_what_cannot_be_compared_is_told(text: str, told: str, results: Path) -> None:
    [what] = quotes.wrong(text, results)
    assert told in what
