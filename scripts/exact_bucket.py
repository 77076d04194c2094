"""What an exact token bucket could have answered, when all that is known of each decision is an interval.

A client knows when it sent a request and when the answer came; the decision fell somewhere between. So after
every answer the bucket is known up to a range of states. An answer that no state of the range could have given,
at any instant of the interval, proves that the bucket is not exact.

Whole microseconds throughout. The state is the instant at which the bucket will be full again: a cost of one moves
it by one interval, and it may lie at most `capacity` intervals ahead.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """One request: when it was sent and answered, in microseconds on the clock that also decided, and the verdict."""

    sent: int
    received: int
    accepted: bool


class Impossible(Exception):
    """An answer that no exact bucket could have given."""


class ExactBucket:
    """The range of states that a bucket of `capacity`, one more every `interval` microseconds, may be in.

    Answers are given in their order, none sent before the one before was received.
    """

    def __init__(self, capacity: int, interval: int) -> None:
        self.interval = interval
        # With one unit left to take, the bucket is full again this far ahead at most.
        self.tolerance = (capacity - 1) * interval
        # Full since ever: the earliest instant does for both ends.
        self.earliest = self.latest = 0
        self.received = 0

    def observe(self, answer: Answer) -> None:
        """Narrows the range by one answer, or raises Impossible."""
        if not self.received <= answer.sent <= answer.received:
            raise ValueError(f"{answer} overlaps the answer before it, or ends before it begins")
        self.received = answer.received
        if answer.accepted:
            self._accepted(answer)
        else:
            self._refused(answer)

    def _accepted(self, answer: Answer) -> None:
        # Accepted at t from state s: t >= s - tolerance; then s' = max(s, t) + interval, which grows with both.
        first = max(answer.sent, self.earliest - self.tolerance)
        if first > answer.received:
            late = first - answer.received
            raise Impossible(f"accepted, {late} us before an exact bucket had anything to give")
        latest = min(self.latest, answer.received + self.tolerance)
        self.earliest = max(self.earliest, first) + self.interval
        self.latest = max(latest, answer.received) + self.interval

    def _refused(self, answer: Answer) -> None:
        # Refused at t from state s: t < s - tolerance; the state stays.
        earliest = max(self.earliest, answer.sent + self.tolerance + 1)
        if earliest > self.latest:
            late = earliest - self.latest
            raise Impossible(f"refused, though an exact bucket had something to give for {late} us")
        self.earliest = earliest


def simulate(capacity: int, interval: int, instants: list[int]) -> list[bool]:
    """What an exact bucket answers to requests decided at these instants (ascending microseconds)."""
    full_at, verdicts = 0, []
    for now in instants:
        accepted = now >= full_at - (capacity - 1) * interval
        if accepted:
            full_at = max(full_at, now) + interval
        verdicts.append(accepted)
    return verdicts
