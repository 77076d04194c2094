"""Who is asking, and what he is told; the tables of tests/http hold the rest."""

import time

import pytest
from flask import Flask, request

from mirab import InvalidArgument, Limiter, ManualClock
from mirab.flask import client_address, get_remote_address
from mirab.http import Answers, Clients


def told(limits: str, *costs: int, **options: object) -> dict[str, str]:
    limiter = Limiter(limits, clock=ManualClock())
    for cost in costs:
        decision = limiter.acquire("k", cost)
    return dict(Answers(**options).answer(decision, unix_now=1000).headers)  # type: ignore[arg-type]


def test_an_admission_and_a_refusal() -> None:
    assert told("5/minute", 1) == {
        "RateLimit-Policy": '"5/minute";q=5;w=60',
        "RateLimit": '"5/minute";r=4;t=12',
    }
    headers = told("1/minute", 1, 1, families=["draft-8", "x-ratelimit-epoch"], body="problem")
    assert headers["Retry-After"] == "60"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-RateLimit-Reset"] == "1060"
    assert headers["Content-Type"] == "application/problem+json"
    assert "Retry-After" not in told("deny", 1)


def test_an_answer_is_a_status_headers_and_a_body() -> None:
    limiter = Limiter("1/minute", clock=ManualClock())
    answers = Answers(body="json")
    admitted, refused = (answers.answer(limiter.acquire("k")) for _ in range(2))
    assert (admitted.status, admitted.body, repr(admitted)) == (200, None, "Answer(status=200)")
    assert refused.status == 429
    assert refused.body is not None
    assert refused.body.startswith('{"error":"rate_limited"')


def test_names_and_partitions() -> None:
    decision = Limiter("5/minute").acquire("k")
    policy = [
        dict(answers.answer(decision, policy_name='a"b', partition_key=key).headers)["RateLimit-Policy"]
        for answers in (Answers(), Answers(partition_salt=b"0123456789abcdef"))
        for key in ("k", b"k", "other")
    ]
    assert policy[0].startswith(r'"a\"b";q=5;w=60;pk=:')
    assert policy[0] == policy[1]
    assert policy[3] == policy[4]
    assert len(set(policy)) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"families": ["draft-99"]}, "draft-99"),
        ({"families": "draft-8"}, "families 'draft-8': it must be a list"),
        ({"families": [8]}, "families"),
        ({"body": "xml"}, "xml"),
        ({"partition_salt": b"short"}, "5 bytes"),
        ({"partition_salt": "0123456789abcdef"}, "partition_salt: it must be bytes"),
        ({"max_hold": -1}, "max_hold -1"),
        ({"max_hold": float("nan")}, "max_hold nan"),
    ],
)
def test_what_is_no_way_to_answer(options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        Answers(**options)  # type: ignore[arg-type]


def test_a_bad_time_and_no_decision() -> None:
    decision = Limiter("5/minute").acquire("k")
    for now in (-1, float("nan"), "now"):
        with pytest.raises(InvalidArgument, match="unix_now"):
            Answers().answer(decision, unix_now=now)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="it must be a Decision"):
        Answers().answer("yes")  # type: ignore[arg-type]


def test_clients() -> None:
    clients = Clients(["10.0.0.0/8"])
    assert clients.header == "x-forwarded-for"
    assert clients.key("10.0.0.1", ["1.1.1.1, 192.0.2.7"]) == "192.0.2.7"
    assert clients.key("192.0.2.9", ["1.1.1.1"]) == "192.0.2.9"
    assert clients.key("10.0.0.1", (line for line in ["192.0.2.7"])) == "192.0.2.7"
    assert clients.key("10.0.0.1", ["\udcff, 192.0.2.7"]) == "192.0.2.7"
    assert (Clients().header, Clients(0).header, Clients([]).header) == (None, None, None)
    assert Clients().key(None) is None
    assert Clients(1, header="Forwarded").key("10.0.0.1", ["for=192.0.2.7"]) == "192.0.2.7"


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((["everyone"],), {}, "everyone"),
        ((["0.0.0.0/0"],), {}, "everybody"),
        (("10.0.0.0/8",), {}, "trusted_proxies '10.0.0.0/8'"),
        ((-1,), {}, "trusted_proxies -1"),
        ((33,), {}, "33"),
        ((True,), {}, "trusted_proxies True"),
        ((1.5,), {}, "trusted_proxies 1.5"),
        (([1],), {}, "trusted_proxies"),
        ((1,), {"header": "X-A, X-B"}, "one header"),
        ((1,), {"ipv6_prefix": 0}, "1 to 128"),
        ((1,), {"ipv6_prefix": 129}, "1 to 128"),
        ((1,), {"ipv6_prefix": -1}, "ipv6_prefix -1"),
    ],
)
def test_whom_nobody_can_trust(arguments: tuple[object, ...], options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        Clients(*arguments, **options)  # type: ignore[arg-type]


def test_lines_are_a_list() -> None:
    for lines in ("192.0.2.7", b"192.0.2.7", 5, [5]):
        with pytest.raises(InvalidArgument, match="lines"):
            Clients(1).key("10.0.0.1", lines)  # type: ignore[arg-type]


def test_flask_asks_the_proxies_that_are_trusted() -> None:
    app = Flask(__name__)
    behind, hops = client_address(["10.0.0.0/8"]), client_address(1, header="Forwarded")
    environ = {"REMOTE_ADDR": "10.0.0.1"}
    headers = {"X-Forwarded-For": "1.1.1.1, 192.0.2.7", "Forwarded": "for=192.0.2.8"}
    with app.test_request_context(environ_base=environ, headers=headers):
        assert (behind(), hops(), get_remote_address()) == ("192.0.2.7", "192.0.2.8", "10.0.0.1")
    with app.test_request_context(environ_base={"REMOTE_ADDR": "2001:db8::1"}, headers=headers):
        assert behind() == "2001:db8::/64"
        assert request.remote_addr == "2001:db8::1"
    with app.test_request_context(environ_base={"REMOTE_ADDR": ""}, headers=headers):
        assert (behind(), get_remote_address()) == ("", "")
    with pytest.raises(InvalidArgument, match="everybody"):
        client_address(["::/0"])


def test_no_time_zone_changes_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    families = ["draft-8", "draft-7", "draft-6", "x-ratelimit", "x-ratelimit-epoch"]
    answers = []
    for zone in ("UTC", "Asia/Tashkent", "America/New_York", "Africa/Cairo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        answers.append(told("5/minute; fixed_window: 9/day", 5, 1, families=families))
    monkeypatch.undo()
    time.tzset()
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["Retry-After"] == "12"


def test_a_reset_is_the_decisions_own_to_the_microsecond() -> None:
    clock = ManualClock(1_761_440_400_999_998)
    answers = Answers(["x-ratelimit-epoch"])
    decision = Limiter("fixed_window: 3/minute", clock=clock).acquire("k")
    for now in (None, 1761440400.999998):
        assert dict(answers.answer(decision, unix_now=now).headers)["X-RateLimit-Reset"] == "1761440460"
    limiter = Limiter("fixed_window: 1000000/minute")
    headers_of = (dict(answers.answer(limiter.acquire("k")).headers) for _ in range(1000))
    assert all(int(headers["X-RateLimit-Reset"]) % 60 == 0 for headers in headers_of)
