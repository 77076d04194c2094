"""Four gunicorn workers and one Express process, one bucket of ten: of 100 requests at once, exactly ten pass."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import Counter

from apps import App, flask_app, node_app

LIMITS = "1/hour burst 10"
REQUESTS, CAPACITY = 100, 10
REPETITIONS = int(os.environ.get("MIRAB_REPETITIONS", "20"))


async def crowd(apps: list[App], user: str) -> Counter[tuple[str, int]]:
    """Connects 100 times, to each app in turn, then sends all requests at once: how often which status came back."""
    turns = [apps[turn % len(apps)] for turn in range(REQUESTS)]
    streams = await asyncio.gather(*(asyncio.open_connection(app.host, app.port) for app in turns))
    for _, writer in streams:
        writer.write(f"GET / HTTP/1.1\r\nHost: localhost\r\nx-user-id: {user}\r\nConnection: close\r\n\r\n".encode())
    statuses = await asyncio.wait_for(asyncio.gather(*(status(*stream) for stream in streams)), timeout=60)
    return Counter((app.name, number) for app, number in zip(turns, statuses))


async def status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """The status of an answer. Closes at once: a worker waits for that, or two seconds, before its next request."""
    answer = await reader.read()
    writer.close()
    return int(answer.split(b" ", 2)[1])


def test_exactly_ten_of_a_hundred_pass(store: str) -> None:
    admitted: Counter[str] = Counter()
    with (
        flask_app(store, LIMITS, workers=4) as flask,
        node_app("express_app", store, LIMITS) as express,
    ):
        for repetition in range(REPETITIONS):
            seen = asyncio.run(crowd([flask, express], f"crowd-{uuid.uuid4()}"))
            statuses = Counter[int]()
            for (app, status), count in seen.items():
                statuses[status] += count
                if status == 200:
                    admitted[app] += count
            assert statuses == {200: CAPACITY, 429: REQUESTS - CAPACITY}, f"repetition {repetition}: {seen}"
    # Else the scene would have tested one app only.
    assert set(admitted) == {"flask", "express_app"}, admitted
