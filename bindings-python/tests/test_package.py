"""The package itself: its names, its version, its readme."""

import importlib.metadata
import re
import runpy
from pathlib import Path

import pytest

import mirab
from mirab import Limit

README = Path(__file__).parent.parent / "README.md"


def test_every_public_name_exists() -> None:
    for name in mirab.__all__:
        assert getattr(mirab, name) is not None
    assert set(mirab.__all__) <= set(dir(mirab))
    with pytest.raises(AttributeError, match="Limitter"):
        mirab.Limitter  # noqa: B018


def test_the_version_is_the_crates() -> None:
    assert mirab.__version__ == importlib.metadata.version("mirab")


def test_the_package_is_typed() -> None:
    package = Path(mirab.__file__).parent
    assert (package / "py.typed").exists()
    assert (package / "_mirab.pyi").exists()


def test_the_package_needs_nothing() -> None:
    required = importlib.metadata.requires("mirab") or []
    assert all("extra ==" in requirement for requirement in required)


EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0])
def test_the_examples_of_the_readme_run_word_for_word(tmp_path: Path, example: str) -> None:
    program = tmp_path / "example.py"
    program.write_text(example)
    runpy.run_path(str(program))


def test_the_limits_of_the_readme_are_what_they_say() -> None:
    rows = re.findall(r"^\| (`.*`) \| `Limit\.(\w+)\((.*)\)` \|", README.read_text(), re.MULTILINE)
    assert len(rows) == 6
    for texts, maker, numbers in rows:
        made = getattr(Limit, maker)(*map(int, numbers.split(", ")))
        assert made in [Limit.parse(text) for text in re.findall("`(.*?)`", texts)]
