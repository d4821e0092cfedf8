"""What a file says more than once is left out here: rolling captions, windows that overlap, and finals that come twice.

Rolling captions show the line before once more with each new one. A window of a recording that overlaps the one before
says again what that ended with. Two people, or one at another time, may say the same, and that is heard twice.

Some transcribers end the parts of an utterance and then the whole; with others each final text begins with all before
it. What people say twice themselves is told from that by its length and place.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from context_builder.transcript.utterance import Utterance

TOUCHING: Final = 0.1
"""Seconds between two captions, the second of which takes the place of the first."""

_PAUSE: Final = 5.0
"""Seconds after which a rolling caption may still show the line before."""

_FLASH: Final = 0.05
"""Seconds of a caption that nobody can read: it is there to roll lines up."""

_SHARE: Final = 0.5
"""Part of the captions of a rolling file that show words of the one before."""

_NEAR: Final = 3
"""Utterances before one that are looked at for its words: others may have spoken between."""

_SURE: Final = 3
"""Words of a text that grows, of which the last may change."""

_SENTENCE_ENDS: Final = (".", "?", "!", "…", "。", "？", "！")

_LONGEST: Final = 400
"""Words of an overlap that is looked for."""


def words(text: str) -> list[str]:
    """Return the words of a text in small letters and without signs, one for each that blanks tell apart."""
    return ["".join(one for one in word if one.isalnum()).casefold() or word for word in text.split()]


def overlap(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many words at the end of one text are those at the beginning of the next."""
    most = min(len(before), len(after), _LONGEST)
    tail = before[len(before) - most :]
    return next((count for count in range(most, 0, -1) if tail[most - count :] == after[:count]), 0)


def without(text: str, count: int) -> str:
    """Return a text without so many of its first words."""
    return " ".join(text.split()[count:])


def once(said: Sequence[Utterance]) -> list[Utterance]:
    """Return the utterances with each thing said once, in the same order."""
    return _without_windows(rolled_out(grown(said)))


def rolled_out(said: Sequence[Utterance]) -> Sequence[Utterance]:
    """Return captions without the words that each shows of the one before; those that do not roll as they were."""
    return [*_rolled_out(said)] if _rolls(said) else said


def grown(said: Sequence[Utterance]) -> Sequence[Utterance]:
    """Return the utterances without the earlier states of those that grow, as captions do that are saved all the time.

    What comes again under one ``key`` is one, in its last state. Without keys, half of all that follow on another grow,
    or half of those by the same speaker and one twice in a row; what ends a sentence was said then, and stays unless
    more words begin with all of it. Those with an end may roll instead, and are as they were.
    """
    said = _last_states(said)
    if any(one.until is not None for one in said):
        return said
    grows = [_grows(before, after, exactly=True) for before, after in pairwise(said)]
    alike = sum(before.speaker == after.speaker for before, after in pairwise(said))
    has_chain = any(one and more for one, more in pairwise(grows))
    if sum(grows) < 2 or sum(grows) < _SHARE * (alike if has_chain else len(grows)):
        return said
    kept: list[Utterance] = []
    for one in said:
        if kept and (_grows(kept[-1], one) or _is_state(kept[-1], one)):
            kept[-1] = replace(kept[-1], text=one.text, until=one.until)
        else:
            kept.append(one)
    return kept


def _last_states(said: Sequence[Utterance]) -> Sequence[Utterance]:
    """Return the utterances of which those with the same key and speaker are one, in its last state, at its place.

    Keys that name something else are not followed in all the file: who speaks, where each speaker has one, or segments
    that are counted from the beginning again, of which some have texts that do not begin alike.
    """
    keys: dict[str, set[Hashable]] = {}
    for one in said:
        keys.setdefault(one.speaker, set()).add(one.key)
    if all(len(some) < 2 for some in keys.values()):
        return said
    places: dict[tuple[Hashable, str], int] = {}
    kept: list[Utterance] = []
    for one in said:
        place = None if one.key is None else places.get((one.key, one.speaker))
        if place is not None:
            if not is_later_state(kept[place].text, one.text):
                return said
            kept[place] = replace(kept[place], text=one.text, until=one.until)
            continue
        if one.key is not None:
            places[one.key, one.speaker] = len(kept)
        kept.append(one)
    return kept if len(kept) < len(said) else said


def is_later_state(before: str, after: str) -> bool:
    """Return whether a text is an earlier one that grew, of which a word, or a third, may be others now."""
    known, now = words(before), words(after)
    alike = sum(one == other for one, other in zip(known, now, strict=False))
    return alike > 0 and len(now) >= len(known) and alike >= len(known) - max(1, len(known) // 3)


def _is_state(before: Utterance, after: Utterance) -> bool:
    """Return whether a text of a file that grows is the one before with more, or once more where that is long."""
    known, now = words(before.text), words(after.text)
    return before.speaker == after.speaker and len(known) > _SURE and now[: len(known)] == known


def _grows(before: Utterance, after: Utterance, *, exactly: bool = False) -> bool:
    is_whole = before.text.rstrip(" \"'”’»)").endswith(_SENTENCE_ENDS)
    return before.speaker == after.speaker and not is_whole and _goes_on(before.text, after.text, exactly=exactly)


def _goes_on(before: str, after: str, *, exactly: bool) -> bool:
    """Return whether a longer text begins with all words of another one, whose last may have been heard wrong."""
    known, now = words(before), words(after)
    if len(now) <= len(known):
        return False
    known = known[:-1] if len(known) > _SURE and not exactly else known
    return len(known) > 0 and now[: len(known)] == known


def _touch(before: Utterance, after: Utterance, most: float) -> bool:
    if before.until is None or after.at is None or before.speaker != after.speaker:
        return False
    return after.at - before.until <= most


def _rolls(said: Sequence[Utterance]) -> bool:
    """Return whether these are captions that show words of the one before, as those do that roll."""
    touching = shown = sure = 0
    for before, after in pairwise(said):
        if not _touch(before, after, TOUCHING):
            continue
        touching += 1
        now = words(after.text)
        if count := overlap(words(before.text), now):
            shown += 1
            flashes = after.until is not None and after.at is not None and after.until - after.at <= _FLASH
            sure += count > 1 and (count < len(now) or flashes)
    return sure > 0 and touching > 1 and shown >= _SHARE * touching


def _rolled_out(said: Sequence[Utterance]) -> Iterable[Utterance]:
    screen: list[str] = []
    last: Utterance | None = None
    for one in said:
        now = words(one.text)
        count = overlap(screen, now) if last and _touch(last, one, _PAUSE) else 0
        if last and count == 1 and not _touch(last, one, TOUCHING):
            count = 0
        screen, last = now, one
        if rest := without(one.text, count):
            yield replace(one, text=rest)


def _without_windows(said: Iterable[Utterance]) -> list[Utterance]:
    """Leave out what an utterance says of another that was still going on when it began."""
    kept: list[Utterance] = []
    near: deque[tuple[Utterance, list[str]]] = deque(maxlen=_NEAR)
    for one in said:
        now = words(one.text)
        count = max((_again(before, known, one, now) for before, known in near), default=0)
        near.append((one, now))
        if rest := without(one.text, count):
            kept.append(replace(one, text=rest) if count else one)
    return kept


def _again(before: Utterance, known: list[str], one: Utterance, now: list[str]) -> int:
    """Return how many of the first words of an utterance were said in another one at the same time."""
    if before.speaker != one.speaker or before.at is None or one.at is None:
        return 0
    if known == now and before.at == one.at:
        return len(now)
    if before.until is None or before.until - one.at <= TOUCHING or one.at < before.at:
        return 0
    if len(now) > 1 and len(now) <= len(known) and known[-len(now) :] == now:
        return len(now)
    count = overlap(known, now)
    is_whole = count == len(now) or count == len(known)
    return count if count > 1 or is_whole else 0


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
        now, last = _units(text), _units(known.last)
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
        last = _units(known.last)
        if not last or len(now) <= len(last) or now[: len(last)] != last:
            return 0
        is_exact = text.strip().startswith(known.last.strip())
        if known.cumulative or len(last) > _size(text) or (is_exact and known.last.rstrip().endswith(_SENTENCE_ENDS)):
            known.cumulative = True
            return len(last)
        return 0


def _size(text: str) -> int:
    """Return how many of the parts of a text that :func:`_units` tells apart are a word."""
    return _IN_A_WORD if _is_blankless(text) else 1


def _is_blankless(text: str) -> bool:
    return not text.isascii() and re.search(f"[{_BLANKLESS}]", text) is not None


def _units(text: str) -> list[str]:
    """Return the words of a text; in a script without blanks, its characters."""
    return [one.casefold() for one in _UNIT.findall(text)] if _is_blankless(text) else words(text)


def _rest(text: str, count: int) -> str:
    """Return a text without so many of its first words."""
    if not count or not _is_blankless(text):
        return without(text, count)
    end = [found.end() for found in _UNIT.finditer(text)][count - 1]
    return " ".join(text[end:].lstrip(_SIGNS).split())
