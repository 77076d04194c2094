"""A plain HTTP client that adds nothing of its own."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from apps import App


@dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: dict[str, Any]


def get(app: App, user: str | bytes | None = None, path: str = "/") -> Reply:
    """One request on a connection of its own; `user` goes into x-user-id as it is."""
    connection = http.client.HTTPConnection(app.host, app.port, timeout=20)
    try:
        connection.putrequest("GET", path)
        if user is not None:
            connection.putheader("x-user-id", user)
        connection.putheader("Connection", "close")
        connection.endheaders()
        response = connection.getresponse()
        body = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        return Reply(response.status, response.headers, json.loads(body) if is_json else {})
    finally:
        connection.close()
