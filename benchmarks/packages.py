"""How large what a user installs is, and how long loading it takes."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path
from typing import Any

import environments
from protocol import ask_once


def measure() -> dict[str, Any]:
    """Bytes of each package and of the library in it; milliseconds of loading, the median of fresh processes."""
    workers = {"import mirab": environments.python(), "require('mirab')": environments.node()}
    environments.c()
    wheel = environments.one("mirab-*.whl")
    tarballs = [environments.one("mirab-[0-9]*.tgz"), environments.one("mirab-linux-*.tgz")]
    library = next(Path(environments.CACHE / "c/usr/local/lib").glob("libmirab.so.*.*.*"))
    return {
        "sizes": {
            "wheel": wheel.stat().st_size,
            "wheel, unpacked": _unpacked_wheel(wheel),
            "npm packages": sum(tarball.stat().st_size for tarball in tarballs),
            "npm packages, unpacked": sum(_unpacked_tarball(tarball) for tarball in tarballs),
            "libmirab.so": library.stat().st_size,
        },
        "loading_ms": {what: ask_once(worker, "--startup")["ms"] for what, worker in workers.items()},
    }


def _unpacked_wheel(wheel: Path) -> int:
    with zipfile.ZipFile(wheel) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def _unpacked_tarball(tarball: Path) -> int:
    with tarfile.open(tarball) as archive:
        return sum(entry.size for entry in archive)
