"""A worker of gunicorn that, when asked to, rushes at a key together with the other programs of test_shared_memory.py.

A worker that waits for the start takes no other request: so four requests find four workers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import mirab

Application = Callable[[dict[str, Any], Callable[[str, list[tuple[str, str]]], object]], Iterable[bytes]]


def rush(limits: str, store: str, key: str, folder: Path, share: int, after: int) -> int:
    """How many of our requests passed: `share` of them, and `after` more once one was refused."""
    with mirab.Limiter(limits, store, on_store_failure="raise") as limiter:
        (folder / f"ready-{os.getpid()}").touch()
        while not (folder / "go").exists():
            time.sleep(0.0002)
        passed = turn = 0
        while turn < share or (passed < turn and turn < share + after):
            passed += limiter.allow(key)
            turn += 1
            if turn % 4 == 0 and turn < share:
                os.sched_yield()
        return passed


def left(limits: str, store: str, key: str) -> dict[str, Any]:
    """What stands when all have come to their end."""
    with mirab.Limiter(limits, store, on_store_failure="raise") as limiter:
        decision = limiter.peek(key)
        return {"allowed": decision.allowed, "used": [standing.used for standing in decision.standings]}


def create_app() -> Application:
    def app(environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
        query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
        where = query["limits"], query["store"], query["key"]
        if environ["PATH_INFO"] == "/left":
            answer = left(*where)
        else:
            passed = rush(*where, Path(query["folder"]), int(query["share"]), int(query["after"]))
            answer = {"pid": os.getpid(), "passed": passed}
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    return app
