"""A server that refuses a key says why: its own words are shown without the key, and without what was sent."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic_core import from_json

_LONGEST: Final = 200
"""Characters of a server's words that are shown."""

_SEARCHED: Final = 1_000
"""Characters of a server's words that are looked at."""

_WORD: Final = re.compile(r"[\w.~+/=-]{6,}")
_LIKE_A_KEY: Final = re.compile(r"\bsk-[\w*-]+|(?=[\w-]*\d)[\w-]{16,}")
_MASKED: Final = re.compile(r"…[*…\w-]*")
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?…]) +(?=[A-Z])")
_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_ECHO: Final = 16
"""Characters in a row from the request that make a server's words a quote of it."""


def words_of_refusal(body: bytes, key: str, sent: str) -> str:
    """Return the message of an answer that refuses ``key``, in one line and quotes; empty where there is none, or it
    quotes what was ``sent``.

    The key and its parts are masked, and so is what may be another, and addresses, which may hold a password. After
    the first sentence, those with something masked are left out.
    """
    try:
        said = from_json(body)
    except ValueError:
        return ""
    line = " ".join(_message(said)[:_SEARCHED].split())
    if _quotes(line, sent):
        return ""
    line = _ADDRESS.sub("…", line)
    if key:
        line = line.replace(key, "…")
        line = _WORD.sub(lambda word: "…" if word[0] in key else word[0], line)
    first, *others = _SENTENCE_ENDS.split(_MASKED.sub("…", _LIKE_A_KEY.sub("…", line)))
    line = " ".join([first, *(one for one in others if "…" not in one)])
    return f"“{line[: _LONGEST - 1]}…”" if len(line) > _LONGEST else f"“{line}”" if line else ""


def _quotes(line: str, sent: str) -> bool:
    """Return whether a line repeats something of what was sent."""
    said, known = line.casefold(), " ".join(sent.casefold().split())
    return any(said[start : start + _ECHO] in known for start in range(max(1, len(said) - _ECHO + 1))) and bool(said)


def _message(said: Any) -> str:
    if isinstance(said, list):
        said = said[0] if said else None
    if isinstance(said, dict):
        found = next((said[name] for name in ("error", "message", "detail") if said.get(name)), "")
        return _message(found) if isinstance(found, dict) else found if isinstance(found, str) else ""
    return ""
