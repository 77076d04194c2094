"""A Flask app that gives each user a bucket and shows its state in every answer.

MIRAB_STORE says where the buckets live, MIRAB_LIMITS how large they are. Apps that name the same two share their
buckets, whatever language they are written in. Unless told otherwise, all of this machine do: no server is needed.
"""

from __future__ import annotations

import math
import os
from typing import Any

from flask import Flask, Response, jsonify, request

import mirab
from mirab.flask import Limiter, RateLimitExceeded


def user() -> str:
    """Who is limited. In a real app: what a login or a proxy that you trust has put there."""
    return request.headers.get("x-user-id") or "default-user"


def seconds_to_wait(decision: mirab.Decision) -> int | None:
    """As Retry-After says it."""
    return None if decision.retry_after is None else math.ceil(decision.retry_after)


def answer(status: int, message: str, decision: mirab.Decision | None = None) -> Response:
    body: dict[str, Any] = {"user": user(), "message": message}
    if decision is not None:
        body["bucket"] = {
            "allowed": decision.allowed,
            "limit": decision.limit,
            "used": decision.used,
            "remaining": decision.remaining,
            "retry_after": seconds_to_wait(decision),
        }
    response = jsonify(body)
    response.status_code = status
    return response


def refusal_text(decision: mirab.Decision) -> str:
    """In Uzbek: too many requests, and after how many seconds to try again."""
    seconds = seconds_to_wait(decision)
    if seconds is None:
        return "Bu soʻrov hech qachon qabul qilinmaydi."
    return f"Soʻrovlar juda koʻp. {seconds} soniyadan keyin qayta urinib koʻring."


def create_app() -> Flask:
    app = Flask(__name__)
    app.json.ensure_ascii = False
    limiter = Limiter(
        user,
        app=app,
        application_limits=[os.environ.get("MIRAB_LIMITS") or "1/second burst 5"],
        storage_uri=os.environ.get("MIRAB_STORE") or "shm:examples",
        on_store_failure=os.environ.get("MIRAB_ON_STORE_FAILURE") or "local",
        strategy="token-bucket",
    )

    @app.get("/")
    def welcome() -> Response:
        decided = limiter.current_limit
        return answer(200, f"Xush kelibsiz, {user()}!", decided and decided.decision)

    @app.errorhandler(RateLimitExceeded)
    def refuse(refusal: RateLimitExceeded) -> Response:
        return answer(429, refusal_text(refusal.limit.decision), refusal.limit.decision)

    @app.errorhandler(mirab.MirabError)
    def store_failed(error: mirab.MirabError) -> Response:
        app.logger.error("no decision: %s", error)
        response = answer(503, "Xizmat vaqtincha ishlamayapti. Birozdan keyin qayta urinib koʻring.")
        response.headers["Retry-After"] = "1"
        return response

    return app
