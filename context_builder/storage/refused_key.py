"""A server that refuses a key says why in its own words, which are shown without the key."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic_core import from_json

_LONGEST: Final = 200
"""Characters of a server's words that are shown."""

_WORD: Final = re.compile(r"[\w.~+/=-]{6,}")
_LIKE_A_KEY: Final = re.compile(r"\bsk-[\w*-]+|(?=[\w-]*\d)[\w-]{16,}")


def words_of_refusal(body: bytes, key: str) -> str:
    """Return the message of an answer that refuses ``key``, in one line and quotes; empty where there is none.

    The key and its parts are masked, and so is what may be another.
    """
    try:
        said = from_json(body)
    except ValueError:
        return ""
    line = " ".join(_message(said).split())
    if key:
        line = line.replace(key, "…")
        line = _WORD.sub(lambda word: "…" if word[0] in key else word[0], line)
    line = _LIKE_A_KEY.sub("…", line)
    return f"“{line[: _LONGEST - 1]}…”" if len(line) > _LONGEST else f"“{line}”" if line else ""


def _message(said: Any) -> str:
    if isinstance(said, list):
        said = said[0] if said else None
    if isinstance(said, dict):
        found = next((said[name] for name in ("error", "message", "detail") if said.get(name)), "")
        return _message(found) if isinstance(found, dict) else found if isinstance(found, str) else ""
    return ""
