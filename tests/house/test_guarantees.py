"""docs/guarantees.md names a test for each line, or says that there is none; and the tests that it names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps import ROOT

REFERENCE = re.compile(r"`([\w./-]+\.\w+): ([^`]+)`")

# How a test of that name begins. The second form of Rust's is a line of a macro that makes several.
BEGINNINGS = {
    ".rs": r"#\[test\]\n(?:\s*#\[.*\]\n)*\s*fn {name}\(|^\s+{name}: [\w:, ]+;$",
    ".py": r"^(?:async )?def {name}\(",
    ".mjs": r"\b(?:test|it)\('{name}'",
    ".c": r"^static void {name}\(",
}


def rows(text: str) -> Iterator[str]:
    """The rows of its tables, without their heads."""
    lines = text.splitlines()
    for before, line in zip(["", *lines], lines):
        is_head = not before.startswith("|")
        if line.startswith("|") and not is_head and not set(line) <= set("|-: "):
            yield line


def wrong(text: str, root: Path) -> Iterator[str]:
    for row in rows(text):
        held_by = row.rstrip("| ").rsplit(" | ", 1)[-1]
        found = REFERENCE.findall(held_by)
        if not found and held_by not in ("not tested yet", "the same"):
            yield f"no test, and not said so: {row}"
        for file, name in found:
            path = root / file
            if path.suffix not in BEGINNINGS:
                yield f"{file} is no file of tests"
            elif not path.is_file():
                yield f"there is no {file}"
            elif not re.search(BEGINNINGS[path.suffix].format(name=re.escape(name)), path.read_text(), re.MULTILINE):
                yield f"{file} has no test {name}"


def test_every_line_is_held_by_a_test_that_exists() -> None:
    text = (ROOT / "docs/guarantees.md").read_text()
    assert len(list(rows(text))) > 20
    assert list(wrong(text, ROOT)) == []


TESTS = {
    "one.rs": "#[test]\nfn holds() {\n}\n\nfn helper() {}\n\nmany! {\n    each: draw, 1;\n}\n",
    "two.py": "def test_holds() -> None:\n    assert True\n",
    "three.mjs": "test('it holds', () => {})\n",
    "four.c": "static void it_holds(void) {\n}\n",
}


@pytest.mark.parametrize(
    ("held_by", "told"),
    [
        ("`one.rs: holds`", None),
        ("`one.rs: each` and its neighbours", None),
        ("`two.py: test_holds`, `three.mjs: it holds`", None),
        ("`four.c: it_holds`; between processes not tested yet", None),
        ("not tested yet", None),
        ("the same", None),
        ("", "no test"),
        ("somebody", "no test"),
        ("`one.rs: helper`", "one.rs has no test helper"),
        ("`one.rs: hold`", "one.rs has no test hold"),
        ("`two.py: test_hold`", "two.py has no test test_hold"),
        ("`two.py: test_holds`, `none.rs: holds`", "there is no none.rs"),
        ("`note.md: holds`", "note.md is no file of tests"),
    ],
)
def test_what_is_not_there_is_told(held_by: str, told: str | None, tmp_path: Path) -> None:
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    page = f"# Title\n\n| Event | Cost | Held by |\n|---|---|---|\n| it | little | {held_by} |\n"
    found = list(wrong(page, tmp_path))
    assert len(found) == (told is not None)
    assert told is None or told in found[0]
