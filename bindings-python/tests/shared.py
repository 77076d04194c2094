"""Shared memory for tests: names of this run alone, whose files are removed at the end."""

import os
import uuid
from pathlib import Path

FOLDER = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp")

RUN = f"pytest-{os.getpid()}"
"""What the names of this run begin with."""

SMALL = "max_keys=256&timeout_ms=5000"
"""A process keeps what it has mapped until it ends; a slow moment must not look like a stopped process."""


def path_of(name: str) -> Path:
    """Return where the file of that name is."""
    return FOLDER / f"mirab-{os.getuid()}-1-{name}"


def files_of(name: str) -> list[Path]:
    """Return the files whose names begin so."""
    return sorted(FOLDER.glob(f"mirab-{os.getuid()}-1-{name}*"))


class Shared:
    """A name that nobody else has, and those that begin with it."""

    def __init__(self) -> None:
        self.name = f"{RUN}-{uuid.uuid4().hex[:12]}"

    @property
    def path(self) -> Path:
        """Its file."""
        return path_of(self.name)

    def uri(self, parameters: str = SMALL) -> str:
        """Return the URI of the name; by other parameters than a small file's, where they are given."""
        return f"shm:{self.name}?{parameters}"

    def remove(self) -> None:
        """Remove its files."""
        for path in files_of(self.name):
            path.unlink()
