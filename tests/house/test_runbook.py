"""What docs/runbook.md quotes of the log is what the log says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apps import ROOT

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
STORES = ROOT / "core/src/store"


def quoted_between(heading: str, end: str) -> list[str]:
    """What the first cells of the tables between two headings quote, but for what stands in brackets."""
    _, between = RUNBOOK.split(f"\n{heading}\n")
    rows = between[: between.index(f"\n{end}\n")].splitlines()
    cells = [row.split(" | ", 1)[0] for row in rows if row.startswith("| `")]
    return [words for cell in cells for words in re.findall(r"(?<!\()`([^`]+)`", cell)]


def said(*sources: Path) -> str:
    """What they may say: a text that goes on in the next line of its source is one."""
    return re.sub(r"\\\n\s*", "", "\n".join(path.read_text() for path in sources))


# The words of a row's first cell, unless they are the server's or the system's; and the lines themselves.
QUOTED = [
    *re.findall(r"^\| `([^`]+)`(?: …)? \| ", RUNBOOK.split("## What the log says")[1].split("##")[0], re.MULTILINE),
    "is not asked any more until it answers again:",
    "decides again; it was away for",
    "comes and goes; the next word is when it has decided for",
    "holds what is not this library's:",
]
SAID = said(*sorted((STORES / "redis").glob("*.rs")))
# Of shared memory all of them are the library's own.
QUOTED_OF_SHARED = quoted_between("### What is said of shared memory", "### Workers don't share")
SAID_OF_SHARED = said(STORES / "shm.rs", *sorted((STORES / "shm").glob("*.rs")))


def test_there_are_some() -> None:
    assert len(QUOTED) >= 8
    assert len(QUOTED_OF_SHARED) >= 20


@pytest.mark.parametrize("words", QUOTED)
def test_what_is_quoted_is_said(words: str) -> None:
    assert words in SAID
    assert words in RUNBOOK


@pytest.mark.parametrize("words", QUOTED_OF_SHARED)
def test_what_is_quoted_of_shared_memory_is_said(words: str) -> None:
    assert words in SAID_OF_SHARED
