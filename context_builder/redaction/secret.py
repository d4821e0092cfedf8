"""A secret is a place in a line of text; a placeholder replaces it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

PLACEHOLDER: Final = re.compile(r"§§secret\([^)\s]{0,64}\)")

_VAGUE: Final = ("KEY", "PASSWORD")
"""Kinds of secrets of which no more is known than that they are one."""


class Secret(NamedTuple):
    """Marks ``line[start:end]`` as a secret of this kind."""

    start: int
    end: int
    kind: str


def placeholder(kind: str) -> str:
    """Return the placeholder of a secret. It names no secret, so nothing can resolve it."""
    return f"§§secret({kind})"


def masked(text: str, secrets: Iterable[Secret]) -> str:
    """Return a text with placeholders for secrets, those that overlap being one."""
    shown: list[str] = []
    at = 0
    for secret in merged(secrets):
        shown += (text[at : secret.start], placeholder(secret.kind))
        at = secret.end
    return "".join((*shown, text[at:]))


def merged(found: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order; those that overlap are one, of the first and longest one's kind, if known."""
    apart: list[Secret] = []
    for secret in sorted(found, key=lambda one: (one.start, -one.end, one.kind in _VAGUE)):
        if secret.start >= secret.end:
            continue
        if apart and secret.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = Secret(last.start, max(last.end, secret.end), last.kind)
        else:
            apart.append(secret)
    return apart


def has_one_of(words: Iterable[str], text: str) -> bool:
    """Return whether a text has one of ``words``; most lines are examined no further than this."""
    for word in words:  # noqa: SIM110 any() with a generator takes twice as long
        if word in text:
            return True
    return False
