"""The judge of the demo: it calls impossible what is impossible, and nothing else."""

import itertools
import random

import pytest

from exact_bucket import Answer, ExactBucket, Impossible, simulate


def judged_possible(capacity: int, interval: int, answers: list[Answer]) -> bool:
    bucket = ExactBucket(capacity, interval)
    try:
        for answer in answers:
            bucket.observe(answer)
    except Impossible:
        return False
    return True


def truly_possible(capacity: int, interval: int, answers: list[Answer]) -> bool:
    """Tries every instant of every interval."""
    spans = [range(answer.sent, answer.received + 1) for answer in answers]
    wanted = [answer.accepted for answer in answers]
    return any(simulate(capacity, interval, list(instants)) == wanted for instants in itertools.product(*spans))


def test_agrees_with_trying_every_instant() -> None:
    dice = random.Random(7)
    seen = {True: 0, False: 0}
    for _ in range(4000):
        capacity, interval = dice.randint(1, 3), dice.randint(1, 5)
        answers, now = [], 100
        for _ in range(dice.randint(1, 6)):
            sent = now + dice.randint(0, 4)
            now = sent + dice.randint(0, 3)
            answers.append(Answer(sent, now, dice.random() < 0.6))
        truth = truly_possible(capacity, interval, answers)
        assert judged_possible(capacity, interval, answers) is truth, (capacity, interval, answers)
        seen[truth] += 1
    assert min(seen.values()) > 500, seen


def test_five_of_eight_in_a_hurry() -> None:
    second = 1_000_000
    rush = [Answer(100 + 10 * i, 105 + 10 * i, i < 5) for i in range(8)]
    assert judged_possible(5, second, rush)
    for i, answer in enumerate(rush):
        other = [*rush[:i], Answer(answer.sent, answer.received, not answer.accepted), *rush[i + 1 :]]
        assert not judged_possible(5, second, other[: i + 1])


def test_an_answer_that_could_be_either() -> None:
    emptied = Answer(1_000, 1_000, True)
    for verdict in (True, False):
        assert judged_possible(1, 50, [emptied, Answer(1_049, 1_050, verdict)])
    assert not judged_possible(1, 50, [emptied, Answer(1_048, 1_049, True)])
    assert not judged_possible(1, 50, [emptied, Answer(1_050, 1_051, False)])


def test_answers_in_disorder_are_refused() -> None:
    bucket = ExactBucket(1, 50)
    bucket.observe(Answer(10, 20, True))
    with pytest.raises(ValueError, match="overlaps"):
        bucket.observe(Answer(19, 30, False))
