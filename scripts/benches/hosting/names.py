"""What the bench's sessions are called."""

from __future__ import annotations


def session_name(number: int) -> str:
    return f"hosted-{number}"
