"""What people said, made safe for a terminal."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor moves
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # strings: titles, links
    r"|\x1b[ -/]*[0-~]?"  # every other escape
)

_JOINERS: Final = "‌‍"
"""Zero-width (non-)joiners: invisible, but part of Persian words and of emoji."""


def plain(text: object, limit: int = 2000) -> str:
    """One line of ``text`` that draws nothing but itself, cut after ``limit`` characters.

    Terminal escapes, control characters and the invisible characters that turn the direction
    of writing are taken out; white space becomes single spaces.
    """
    raw = str(text)
    cut = raw[: limit * 2]
    shown = " ".join("".join(_visible(char) for char in _ESCAPES.sub("", cut)).split())
    return shown if len(shown) <= limit and len(raw) == len(cut) else f"{shown[:limit]}…"


def _visible(char: str) -> str:
    if char.isspace():
        return " "
    if char in _JOINERS:
        return char
    return "" if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"} else char
