"""The package itself: its names, its version, its readme."""

import importlib.metadata
import re
import runpy
from pathlib import Path

import pytest

import mirab

README = Path(__file__).parent.parent / "README.md"


def test_every_public_name_exists() -> None:
    for name in mirab.__all__:
        assert getattr(mirab, name) is not None


def test_the_version_is_the_crates() -> None:
    assert mirab.__version__ == importlib.metadata.version("mirab")


def test_the_package_is_typed() -> None:
    package = Path(mirab.__file__).parent
    assert (package / "py.typed").exists()
    assert (package / "_mirab.pyi").exists()


def test_the_package_needs_nothing() -> None:
    required = importlib.metadata.requires("mirab") or []
    assert all("extra ==" in requirement for requirement in required)


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_readme_run_word_for_word(tmp_path: Path, number: int) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    program = tmp_path / "example.py"
    program.write_text(blocks[number])
    runpy.run_path(str(program))
