"""The first examples of the README, word for word, from the installed packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apps import INSTALLED, ROOT

SECTION = re.compile(r"^## A first example\n(.*?)^## ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> dict[str, str]:
    """The fenced blocks of the section, by their language."""
    section = SECTION.search((ROOT / "README.md").read_text())
    assert section, "README.md has no section 'A first example'"
    found = BLOCK.findall(section[1])
    assert sorted(language for language, _ in found) == ["c", "js", "python", "text"]
    return dict(found)


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def promised() -> str:
    return blocks()["text"]


def test_python(tmp_path: Path, promised: str) -> None:
    (tmp_path / "example.py").write_text(blocks()["python"])
    assert run([sys.executable, "example.py"], tmp_path) == promised


def test_node(tmp_path: Path, promised: str) -> None:
    (tmp_path / "example.js").write_text(blocks()["js"])
    (tmp_path / "node_modules").symlink_to(INSTALLED / "node_http" / "node_modules")
    assert run(["node", "example.js"], tmp_path) == promised


def test_c(tmp_path: Path, promised: str) -> None:
    prefix = INSTALLED / "c/usr/local"
    (tmp_path / "example.c").write_text(blocks()["c"])
    flags = subprocess.run(
        ["pkg-config", "--define-prefix", "--cflags", "--libs", "mirab"],
        env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "example.c", "-o", "example", *flags], tmp_path)
    assert run(["./example"], tmp_path, LD_LIBRARY_PATH=str(prefix / "lib")) == promised
