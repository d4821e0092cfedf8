"""What every answer that is an error has in it."""

from __future__ import annotations

from typing import Any

import httpx


def problem(answer: httpx.Response) -> dict[str, Any]:
    """The document of an error, in which all that must be there is."""
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == answer.status_code
    assert document["traceId"] == answer.headers["x-trace-id"]
    assert document["type"].startswith("urn:context-builder:")
    assert document["title"]
    assert document["detail"]
    return document
