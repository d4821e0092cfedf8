"""Final texts without times, of which some say again what was final before: only what is new is heard.

Some transcribers end the parts of an utterance and then the whole; with others each final text begins with all before
it. What people say twice themselves is told from that by its length and place.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from context_builder.transcript.repeats import without, words

_PARTS: Final = 12
"""Newest final texts of a speaker of which a restated one may be made."""

_SENTENCE: Final = 4
"""Words of a final text that comes twice, one directly after the other, and was said once."""

_BLANKLESS: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
)
"""Characters of scripts that are written without blanks: of South East Asia, Japan and China."""

_UNIT: Final = re.compile(rf"[{_BLANKLESS}]|[^\W{_BLANKLESS}]+")
_IN_A_WORD: Final = 2
"""Characters of these scripts that stand for a word, on average."""

_SIGNS: Final = " ,.!?…、。，．！？"
_ENDS: Final = (".", "?", "!", "…", "。", "？", "！")


@dataclass(slots=True)
class _Speaker:
    parts: deque[list[str]] = field(default_factory=lambda: deque(maxlen=_PARTS))
    last: str = ""
    cumulative: bool = False


class RestatedSpeech:
    """What each speaker said lately, to recognize speech that comes again."""

    def __init__(self) -> None:
        self._speakers: dict[str | None, _Speaker] = {}

    def unsaid(self, speaker: str | None, text: str) -> str:
        """Return what is new of a final text; nothing where all of it was said before."""
        known = self._speakers.setdefault(speaker, _Speaker())
        now, last = _words(text), _words(known.last)
        is_doubled = len(now) >= _SENTENCE * _size(text) and now == last
        count = len(now) if is_doubled else max(self._of_parts(known, now), self._of_the_last(known, text, now))
        if now:
            known.last = text
            known.parts.append(now[count:] if count < len(now) else [])
        return _rest(text, count)

    @staticmethod
    def _of_parts(known: _Speaker, now: list[str]) -> int:
        """Return how many words are those of the newest parts, of two at least."""
        said: list[str] = []
        found = 0
        for place, part in enumerate(reversed(known.parts), start=1):
            said = [*part, *said]
            if place > 1 and len(part) < len(said) <= len(now) and now[: len(said)] == said:
                found = len(said)
        return found

    @staticmethod
    def _of_the_last(known: _Speaker, text: str, now: list[str]) -> int:
        """Return how many words are those of the last text, which this one goes on with."""
        last = _words(known.last)
        if not last or len(now) <= len(last) or now[: len(last)] != last:
            return 0
        is_exact = text.strip().startswith(known.last.strip())
        if known.cumulative or len(last) > _size(text) or (is_exact and known.last.rstrip().endswith(_ENDS)):
            known.cumulative = True
            return len(last)
        return 0


def _size(text: str) -> int:
    """Return how many of the parts of a text that :func:`_words` tells apart are a word."""
    return _IN_A_WORD if _is_blankless(text) else 1


def _is_blankless(text: str) -> bool:
    return not text.isascii() and re.search(f"[{_BLANKLESS}]", text) is not None


def _words(text: str) -> list[str]:
    """Return the words of a text; in a script without blanks, its characters."""
    return [one.casefold() for one in _UNIT.findall(text)] if _is_blankless(text) else words(text)


def _rest(text: str, count: int) -> str:
    """Return a text without so many of its first words."""
    if not count or not _is_blankless(text):
        return without(text, count)
    end = [found.end() for found in _UNIT.finditer(text)][count - 1]
    return " ".join(text[end:].lstrip(_SIGNS).split())
