"""Colours, short names and limits, the same in every part of the view."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Mapping
from typing import Final

from context_builder.domains import DOMAINS

_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor moves
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # strings: titles, links
    r"|\x1b[ -/]*[0-~]?"  # every other escape
)

_JOINERS: Final = "‌‍"
"""Zero-width (non-)joiners: invisible, but part of Persian words and of emoji."""


def plain(text: object, limit: int = 2000) -> str:
    """Return ``text`` as one harmless line without control characters, cut after ``limit`` characters.

    Terminal escapes, control characters and the invisible characters that turn the direction
    of writing are taken out; white space becomes single spaces.
    """
    raw = str(text)
    cut = raw[: limit * 2]
    shown = " ".join(spaced(cut).split())
    return shown if len(shown) <= limit and len(raw) == len(cut) else f"{shown[:limit]}…"


def spaced(text: str) -> str:
    """Return one line like :func:`plain`, but with every space of ``text``."""
    return "".join(_visible(char) for char in _ESCAPES.sub("", text))


def _visible(char: str) -> str:
    if char.isspace():
        return " "
    if char in _JOINERS:
        return char
    return "" if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"} else char


UNBOUNDED: Final = 10_000
"""Lines to draw at most where the output just scrolls."""

ASSISTANT: Final = "#c678dd"
"""The assistant's contributions, and nothing else."""

SPEAKERS: Final = tuple("#61afef #98c379 #e5a04b #e06c75 #4ec9b0 #f08fc0 #d7d28a #8f9bff".split())
"""People, in tones that read on dark and on light ground."""

_DOMAINS: Final[Mapping[str, tuple[str, str]]] = dict(
    zip(
        DOMAINS,
        (
            ("Biology", "#7ec86a"),
            ("Chemistry", "#d19a66"),
            ("Physics", "#6c8cff"),
            ("Mathematics", "#9aa5ce"),
            ("Computing", "#4fb3d9"),
            ("Medicine", "#ef6f7a"),
            ("Psychology", "#d68ad6"),
            ("Engineering", "#c9a227"),
            ("Business", "#5fb48c"),
            ("Sociology", "#e0956c"),
            ("Ecology", "#3fbf9b"),
            ("Law", "#b48ead"),
            ("Ethics", "#e5c07b"),
            ("History", "#b08968"),
            ("Linguistics", "#8fbcbb"),
            ("Machine Learning", "#5ea1ff"),
            ("Design", "#f28fad"),
            ("Robotics", "#ff9e64"),
        ),
        strict=True,
    )
)


def short_name(domain: str) -> str:
    """Return the domain where there is no room for its whole name."""
    return _DOMAINS[domain][0] if domain in _DOMAINS else domain.split(" / ")[0]


def domain_colour(domain: str) -> str:
    return _DOMAINS[domain][1] if domain in _DOMAINS else "#9aa5ce"


class SpeakerColours:
    """Each speaker has a colour for as long as the view is open.

    A name prefers one colour, so that it has the same in every view; of two that prefer the
    same, the second to come takes the next free one.
    """

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def __getitem__(self, speaker: str) -> str:
        if speaker not in self._of:
            self._of[speaker] = self._choose(zlib.crc32(speaker.encode()) % len(SPEAKERS))
        return self._of[speaker]

    def _choose(self, preferred: int) -> str:
        taken = set(self._of.values())
        in_order = SPEAKERS[preferred:] + SPEAKERS[:preferred]
        return next((colour for colour in in_order if colour not in taken), SPEAKERS[preferred])
