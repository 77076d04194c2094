"""What docs/faces.md says: the defaults of each face, and that two faces share when the limits are written alike."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import mirab
from apps import INSTALLED, App, flask_app, node_app
from client import get

FLASK = """
import os

from flask import Flask
from mirab.flask import Limiter, get_remote_address

STORE = os.environ["MIRAB_STORE"]

def create_app():
    app = Flask(__name__)
    limiter = Limiter(get_remote_address, app=app, storage_uri=STORE)

    @app.get("/shared")
    @limiter.shared_limit("20/minute", scope="pool")
    def shared():
        return {}

    @app.get("/route")
    @limiter.limit("30/minute")
    def route():
        return {}

    @app.get("/named")
    @limiter.limit("login=40/minute")
    def named():
        return {}

    @app.get("/bucket")
    @limiter.limit("token_bucket: 50/minute")
    def bucket():
        return {}

    @app.get("/token")
    @limiter.limit("login=token_bucket: 5/minute")
    def token():
        return {}

    return app
"""
FLASK_WHOLE = """
import os

from flask import Flask
from mirab.flask import Limiter, get_remote_address

def create_app():
    app = Flask(__name__)
    Limiter(get_remote_address, app=app, storage_uri=os.environ["MIRAB_STORE"], application_limits=["5/minute"])

    @app.get("/")
    def root():
        return {}

    return app
"""
EXPRESS = """
const express = require('express')
const { rateLimit } = require('mirab/express')

const store = process.env.MIRAB_STORE
const app = express()
const ok = (request, response) => response.json({})
const refuse = (request, response) => response.status(429).json({})
app.get('/window', rateLimit({ windowMs: 60_000, limit: 5, store, handler: refuse }), ok)
app.get('/bucket', rateLimit({ limits: '60/minute', store }), ok)
app.get('/prefix', rateLimit({ limits: '70/minute', store, prefix: 'api:' }), ok)
app.get('/nobody', rateLimit({ limits: '80/minute', store, keyGenerator: () => '' }), ok)
app.get('/named', rateLimit({ limits: 'login=5/minute', store }), ok)
const server = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
"""


def keys_of(store: str) -> set[str]:
    """What stands in Redis under this test's own prefix."""
    address, _, parameters = store.partition("?")
    prefix = parameters.rpartition("prefix=")[2]
    command = ["redis-cli", "-u", address, "--raw", "keys", f"{prefix}*"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {key.removeprefix(prefix) for key in listed}


@pytest.fixture
def store(redis_store: str, request: pytest.FixtureRequest) -> str:
    return f"{redis_store}&prefix={request.node.name.replace('_', '')}"


@pytest.fixture
def express(store: str, tmp_path: Path) -> Iterator[App]:
    folder = tmp_path / "express"
    folder.mkdir()
    (folder / "server.js").write_text(EXPRESS)
    (folder / "node_modules").symlink_to(INSTALLED / "express_app" / "node_modules")
    with node_app("express", store, "", folder) as app:
        yield app


def flask(store: str, folder: Path, text: str) -> Iterator[App]:
    (folder / "app.py").write_text(text)
    with flask_app(store, "", 1, folder) as app:
        yield app


@pytest.fixture
def flask_routes(store: str, tmp_path: Path) -> Iterator[App]:
    yield from flask(store, tmp_path, FLASK)


@pytest.fixture
def flask_whole(store: str, tmp_path: Path) -> Iterator[App]:
    yield from flask(store, tmp_path, FLASK_WHOLE)


def test_keys_of_a_limiter(store: str) -> None:
    for limits in (
        "5/minute",
        "5/minute burst 9",
        "fixed_window: 5/minute",
        "fixed_window: 5/minute from first",
        "x=5/minute",
    ):
        assert mirab.Limiter(limits, store).allow("user:42")
    assert keys_of(store) == {f"1:{{user:42}}{end}" for end in ("t5/60", "t5/60+9", "f5/60", "f5/60a", "t=x")}


def test_keys_of_flask(store: str, flask_routes: App) -> None:
    for path in ("/shared", "/route", "/named", "/bucket"):
        assert get(flask_routes, path=path).status == 200
    ends = ("f20/60a!shared:pool", "f30/60a!route", "f=login/60a", "t50/60!bucket")
    assert keys_of(store) == {f"1:{{127.0.0.1}}{end}" for end in ends}


def test_keys_of_express(store: str, express: App) -> None:
    for path in ("/window", "/bucket", "/prefix", "/nobody"):
        assert get(express, path=path).status == 200
    assert keys_of(store) == {
        "1:{127.0.0.1}f5/60a",
        "1:{127.0.0.1}t60/60",
        "1:{api:127.0.0.1}t70/60",
        "1:{anonymous}t80/60",
    }


def test_the_drop_ins_and_a_limiter_share_a_window(store: str, flask_whole: App, express: App) -> None:
    limiter = mirab.Limiter("fixed_window: 5/minute from first", store)
    assert get(flask_whole).status == 200
    assert get(express, path="/window").status == 200
    assert limiter.allow("127.0.0.1", cost=3)
    assert get(flask_whole).headers["Retry-After"] is not None
    assert get(express, path="/window").status == 429
    assert not limiter.allow("127.0.0.1")


def test_a_name_is_one_bucket_for_a_route_of_each(store: str, flask_routes: App, express: App) -> None:
    assert get(flask_routes, path="/token").status == 200
    assert get(express, path="/named").status == 200
    assert mirab.Limiter("login=5/minute", store).peek("127.0.0.1").used == 2
