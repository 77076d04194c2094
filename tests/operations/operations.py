"""Plays a scenario of every operation: operations.py SCENARIO STORE."""

import sys
from pathlib import Path

from mirab import Decision, Limiter, ManualClock, MirabError


def micros(seconds: float) -> int:
    return round(seconds * 1e6)


def told(decision: Decision) -> str:
    retry = "-" if decision.retry_after is None else micros(decision.retry_after)
    verdict = "admitted" if decision else "never" if decision.never else "refused"
    return (
        f"{verdict} by {decision.limit_name}: {decision.used} of {decision.limit} used, {decision.remaining} left, "
        f"retry {retry}, reset {micros(decision.reset_after)}, delay {micros(decision.delay)}"
    )


def play(step: list[str], limiter: Limiter, clock: ManualClock, taken: dict) -> object:
    match step:
        case ["at", us]:
            clock.set_us(int(us))
        case ["acquire", name, key, cost]:
            taken[name] = limiter.acquire(key, int(cost))
            return told(taken[name])
        case ["allow", key, cost]:
            return "yes" if limiter.allow(key, int(cost)) else "no"
        case ["peek", key, cost]:
            return told(limiter.peek(key, int(cost)))
        case ["many", *items]:
            pairs = [(key, int(cost)) for key, cost in zip(items[::2], items[1::2], strict=True)]
            return " | ".join(told(decision) for decision in limiter.acquire_many(pairs))
        case ["wait", key, cost, timeout]:
            decision = limiter.wait(key, int(cost), timeout=int(timeout) / 1e6)
            return f"{told(decision)}, at {clock.now_us}"
        case ["refund", name]:
            return limiter.refund(taken[name])
        case ["commit", name, cost]:
            limiter.commit(taken[name], int(cost))
        case ["release", name]:
            return limiter.release(taken[name])
        case ["block", key, us]:
            limiter.block(key, int(us) / 1e6)
        case ["unblock", key]:
            limiter.unblock(key)
        case ["reset", key]:
            limiter.reset(key)
        case ["stats"]:
            stats = limiter.stats()
            counts = (stats.allowed, stats.refused, stats.never, stats.blocked, stats.errors, stats.refunded)
            return " ".join(map(str, counts))
        case ["close"]:
            limiter.close()
        case _:
            raise SystemExit(f"unknown step {step}")
    return "done"


def main(scenario: str, store: str) -> None:
    limiter = clock = None
    taken: dict = {}
    for line in Path(scenario).read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("limiter "):
            clock = ManualClock()
            limiter, taken = Limiter(line.removeprefix("limiter "), store, clock=clock), {}
            print(line)
            continue
        try:
            print(f"{line} -> {play(line.split(), limiter, clock, taken)}")
        except MirabError as error:
            print(f"{line} -> error {error.kind}")


main(*sys.argv[1:])
