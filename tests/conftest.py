"""What the tests that cross languages share: the helpers of scripts/ and benchmarks/, and a Redis of their own."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]


@pytest.fixture(scope="session")
def redis_store() -> str:
    """The store that both apps name. A slow moment of the machine must not look like an error."""
    if "MIRAB_TEST_REDIS" not in os.environ:
        pytest.fail("MIRAB_TEST_REDIS is not set: run under scripts/with-redis.sh")
    return os.environ["MIRAB_TEST_REDIS"] + "?timeout_ms=5000"
