"""The demo: three users hurry through a Flask app and an Express app that share one bucket a user.

The buckets are in shared memory, without a server; with `--store redis` they are in the Redis of MIRAB_TEST_REDIS.

Prints who was accepted where, and beside it what two limiters that know nothing of each other would have let
through. Fails when any answer is not what an exact bucket could have given at the measured time.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field

from apps import App, flask_app, node_app, shared_memory
from exact_bucket import Answer, ExactBucket, Impossible, simulate

CAPACITY, INTERVAL_US = 5, 1_000_000
LIMITS = "1/second burst 5"
USERS = ("gulnora", "rustam", "zaynab")
RUSH, PAUSE_SECONDS, AFTERWARDS = 8, 3, 3
TITLES = {"flask": "Flask", "express_app": "Express"}

COLOURS = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if COLOURS else text


@dataclass
class User:
    """Somebody who sends one request after the other, to each app in turn."""

    name: str
    apps: list[App]
    clock: int
    asked: list[App] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    trouble: Exception | None = None

    def send(self, count: int) -> None:
        try:
            for _ in range(count):
                app = self.apps[len(self.asked) % len(self.apps)]
                self.answers.append(self._ask(app))
                self.asked.append(app)
        except Exception as trouble:  # told by the main thread
            self.trouble = trouble

    def _ask(self, app: App) -> Answer:
        sent = time.clock_gettime_ns(self.clock) // 1000
        connection = http.client.HTTPConnection(app.host, app.port, timeout=20)
        connection.request("GET", "/", headers={"x-user-id": self.name, "Connection": "close"})
        status = connection.getresponse().status
        received = time.clock_gettime_ns(self.clock) // 1000
        connection.close()
        if status not in (200, 429):
            raise RuntimeError(f"{TITLES[app.name]} answered {self.name} with status {status}, not with 200 or 429")
        return Answer(sent, received, status == 200)

    def impossible(self) -> str | None:
        """The first answer that no exact bucket could have given, in words."""
        bucket = ExactBucket(CAPACITY, INTERVAL_US)
        for number, (app, answer) in enumerate(zip(self.asked, self.answers), start=1):
            try:
                bucket.observe(answer)
            except Impossible as why:
                return f"request {number} of {self.name}, to {TITLES[app.name]}, was {why}"
        return None

    def accepted_apart(self, since: int) -> int:
        """How many from number `since` on would have passed if each app kept buckets of its own."""
        total = 0
        for app in self.apps:
            own = [i for i, asked in enumerate(self.asked) if asked is app]
            instants = [(self.answers[i].sent + self.answers[i].received) // 2 for i in own]
            verdicts = simulate(CAPACITY, INTERVAL_US, instants)
            total += sum(verdict for i, verdict in zip(own, verdicts) if i >= since)
        return total


def all_send(users: list[User], count: int) -> None:
    """All users at the same time."""
    threads = [threading.Thread(target=user.send, args=(count,), daemon=True) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for user in users:
        if user.trouble:
            raise user.trouble


def print_round(users: list[User], since: int) -> None:
    count = len(users[0].asked) - since
    letters = " ".join(TITLES[app.name][0] for app in users[0].asked[since:])
    print(
        paint(
            "2",
            f"  {'user':<9} {letters:<{2 * count}}  {'accepted':<24} {'refused':<24} two separate limiters",
        )
    )
    for user in users:
        verdicts = [answer.accepted for answer in user.answers[since:]]
        marks = " ".join(paint("32", "✔") if verdict else paint("31", "✘") for verdict in verdicts)
        cells = []
        for wanted in (True, False):
            by_app = [
                sum(asked is app and verdict is wanted for asked, verdict in zip(user.asked[since:], verdicts))
                for app in user.apps
            ]
            parts = ", ".join(f"{TITLES[app.name]} {number}" for app, number in zip(user.apps, by_app))
            cells.append(f"{sum(by_app)} ({parts})" if any(by_app) else "none")
        apart = user.accepted_apart(since)
        excess = apart - sum(verdicts)
        beside = f"{apart} accepted" + (paint("33", f", {excess} too many") if excess > 0 else "")
        print(f"  {user.name:<9} {marks}   {cells[0]:<24} {cells[1]:<24} {beside}")
    print()


def play(store: str) -> int:
    shown, kind = store.split("?")[0], store.split(":")[0]
    print(paint("1", f"\nOne bucket a user: capacity {CAPACITY}, one token a second, kept in {shown}"))
    if kind == "shm":
        print("Both apps map that memory: no server is needed.")
    print()
    with flask_app(store, LIMITS, workers=2) as flask, node_app("express_app", store, LIMITS) as express:
        for app, how in ((flask, "gunicorn, 2 workers"), (express, "node")):
            print(f"  {TITLES[app.name]:<9} http://{app.host}:{app.port}  ({how})")
        # The clock that decides: Redis asks the wall clock; in this machine's memory a bucket goes by the boot clock.
        clock = time.CLOCK_BOOTTIME if kind in ("shm", "memory") else time.CLOCK_REALTIME
        users = [User(name, [flask, express], clock) for name in USERS]

        print(paint("1", f"\nEach user sends {RUSH} requests in a hurry, to Flask and Express in turn\n"))
        all_send(users, RUSH)
        print_round(users, 0)

        print(paint("1", f"Everybody waits {PAUSE_SECONDS} seconds, then sends {AFTERWARDS} more\n"))
        time.sleep(PAUSE_SECONDS)
        all_send(users, AFTERWARDS)
        print_round(users, RUSH)

    wrong = [trouble for user in users if (trouble := user.impossible())]
    for trouble in wrong:
        print(paint("1;31", f"NOT EXACT: {trouble}"), file=sys.stderr)
    if wrong:
        return 1
    print(paint("1;32", "Exact: each answer is what one bucket gives at the time that was measured."))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Flask and Express draw from the same bucket.")
    parser.add_argument("--store", help="a store that both apps can reach (default: one in shared memory)")
    store = parser.parse_args().store
    if store == "redis":
        if "MIRAB_TEST_REDIS" not in os.environ:
            parser.error("no Redis: run scripts/with-redis.sh python scripts/demo.py --store redis")
        store = os.environ["MIRAB_TEST_REDIS"] + "?timeout_ms=5000"
    sys.stdout.reconfigure(line_buffering=True)  # also for who reads along through a pipe
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with nullcontext(store) if store else shared_memory("demo") as chosen:
            return play(chosen)
    except (RuntimeError, OSError, http.client.HTTPException) as trouble:
        print(paint("1;31", f"demo: {trouble}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
