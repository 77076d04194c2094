"""What docs/runbook.md quotes of the log is what the log says."""

from __future__ import annotations

import re

import pytest

from apps import ROOT

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
# The words of a row's first cell, unless they are the server's or the system's; and the lines themselves.
QUOTED = [
    *re.findall(r"^\| `([^`]+)`(?: …)? \| ", RUNBOOK.split("## What the log says")[1].split("##")[0], re.MULTILINE),
    "is not asked any more until it answers again:",
    "decides again; it was away for",
    "comes and goes; the next word is when it has decided for",
    "holds what is not this library's:",
]
SAID = "\n".join(path.read_text() for path in sorted((ROOT / "core/src/store/redis").glob("*.rs")))


def test_there_are_some() -> None:
    assert len(QUOTED) >= 8


@pytest.mark.parametrize("words", QUOTED)
def test_what_is_quoted_is_said(words: str) -> None:
    assert words in SAID
    assert words in RUNBOOK
