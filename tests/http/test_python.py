"""The tables of this folder in Python, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mirab import Limiter, ManualClock
from mirab.http import Answers, Clients

FOLDER = Path(__file__).parent
ADDRESSES: list[dict[str, Any]] = json.loads((FOLDER / "addresses.json").read_text())
ANSWERS: list[dict[str, Any]] = json.loads((FOLDER / "answers.json").read_text())


@pytest.mark.parametrize("group", ADDRESSES, ids=lambda group: group["why"])
def test_clients(group: dict[str, Any]) -> None:
    options = {
        option: group[key] for key, option in (("field", "header"), ("ipv6_prefix", "ipv6_prefix")) if key in group
    }
    clients = Clients(group["trusted"], **options)
    for peer, lines, client in group["cases"]:
        lines = lines + lines[-1:] * (group.get("repeat", 1) - 1)
        assert clients.key(peer, lines) == client, (peer, lines)


@pytest.mark.parametrize("told", ANSWERS, ids=lambda told: told["why"])
def test_answers(told: dict[str, Any]) -> None:
    limiter = Limiter(told["limits"], clock=ManualClock(1_000_500_000))
    answers = Answers(
        told["families"],
        body=told.get("body", "none"),
        partition_salt=b"0123456789abcdef",
        max_hold=told.get("max_hold"),
    )
    decision = [limiter.acquire("k", cost) for cost in told["costs"]][-1]
    answer = answers.answer(
        decision,
        policy_name=told.get("policy_name"),
        partition_key=told.get("partition_key"),
        unix_now=1000.5,
    )
    assert [list(pair) for pair in answer.headers] == told["fields"]
    assert (answer.status, answer.body) == (told["status"], told.get("text"))
