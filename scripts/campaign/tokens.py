"""The word that makes each pushed message recognizable, wherever it ends up."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"(?<![0-9A-Za-z])[mp][0-9]{6}(?![0-9A-Za-z])")


def message_token(number: int) -> str:
    """Of a message that is to be taken in."""
    return f"m{number:06d}"


def poison_token(number: int) -> str:
    """Of a delivery that cannot become a message."""
    return f"p{number:06d}"


def tokens_in(text: str) -> list[str]:
    return _TOKEN.findall(text)
