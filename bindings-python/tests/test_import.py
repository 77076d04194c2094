"""What `import mirab` loads, in interpreters of its own: next to nothing, for every process waits for it."""

import subprocess
import sys
from pathlib import Path

import mirab

FOLDER = str(Path(mirab.__file__).parent.parent)
OWN = {"mirab", "mirab._mirab", "mirab._refused"}

BEGINNING = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import mirab
"""

USE = """
limiter = mirab.Limiter(["5/minute", mirab.Limit.token_bucket(9, 60)], clock=mirab.ManualClock())
limiter.allow("k")
decision = limiter.acquire("k", 2)
repr(decision), decision.reset_after, decision.standings[1].next_after
limiter.acquire("k", 9).retry_after
limiter.wait("k", timeout=0.5)
limiter.refund(limiter.acquire_many(["k", ("b", 2)])[1])
limiter.block("k", 60)
try:
    limiter.acquire("")
except mirab.InvalidArgument:
    pass
"""

CLOCK = """
from time import perf_counter
begun = perf_counter()
import mirab
print(perf_counter() - begun)
"""


def run(program: str) -> str:
    command = [sys.executable, "-I", "-S", "-c", program, FOLDER]
    return subprocess.check_output(command, text=True)


def loaded_by(program: str) -> set[str]:
    """The modules that are there at its end, beyond those that the interpreter starts with."""
    return set(run(f"{BEGINNING}{program}\nprint(*set(sys.modules) - before)").split())


def test_importing_loads_nothing_else() -> None:
    assert loaded_by("") == OWN


def test_deciding_loads_nothing_else() -> None:
    assert loaded_by(USE) == OWN


def test_holding_loads_what_it_needs() -> None:
    loaded = loaded_by("with mirab.Limiter('5/minute').hold('k'): pass")
    assert loaded > OWN | {"mirab._hold", "contextlib", "inspect", "logging"}
    assert "mirab.flask" not in loaded


def test_importing_takes_no_time() -> None:
    fastest = min(float(run(BEGINNING.replace("import mirab", CLOCK))) for _ in range(5))
    assert fastest < 0.1, "seconds; on a machine that does nothing else it takes about a millisecond"
