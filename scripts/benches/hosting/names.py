"""What the bench's sessions are called."""

from __future__ import annotations


def session_name(number: int) -> str:
    return f"hosted-{number}"


def session_names(count: int, first: int = 0) -> list[str]:
    return [session_name(number) for number in range(first, first + count)]
