"""A stream keeps what was said lately and what may still be joined with more, over several connections."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from context_builder.transcript.repeats import overlap, without, words
from context_builder.transcript.utterance import CorrectedUtterance, Heard, Utterance

REMEMBERED: Final = 10_000
"""Final messages by which one that comes again is known."""

LONGEST_HELD: Final = 1_000
"""Characters of an utterance that is said without an end of it in sight."""

_NEAR: Final = 10
"""Newest segments of a speaker that are looked at for the words of one that goes on with them."""

_MOST_AWAITED: Final = 100

_LATEST: Final = 1e8
"""Seconds from the beginning of a stream beyond which a number is a moment, or no time."""

MILLISECOND: Final = 0.001
"""Seconds of it."""

Message = Mapping[str, Any]


def time_in(entry: Message, key: str, unit: float = 1.0) -> float | None:
    """Return a time from the beginning of a stream, given in units of so many seconds; None for any other value."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    at = value * unit
    return at if 0 <= at < _LATEST else None


class Stream:
    """A stream keeps utterances back that may yet be joined with what follows, and remembers earlier ones."""

    def __init__(self) -> None:
        self.session = ""
        self.tells_segments = False  # a text that ends was told by its parts
        self.lines: list[Message] = []  # all that is shown, of a service that tells only what changes
        self.committed = ""  # the last text, which may come again with its words
        self._in_order: dict[str, list[Utterance] | None] = {}
        self._held: dict[Hashable, list[Utterance]] = {}
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._segments: OrderedDict[Hashable, list[tuple[float, float]]] = OrderedDict()
        self._newest: OrderedDict[Hashable, list[tuple[float, float, list[str]]]] = OrderedDict()
        self._said: OrderedDict[Hashable, Utterance] = OrderedDict()
        self._parts: OrderedDict[Hashable, tuple[Hashable, str]] = OrderedDict()
        self._first: OrderedDict[Hashable, Hashable] = OrderedDict()

    @property
    def holds(self) -> bool:
        """Return whether something is held back."""
        return bool(self._held) or any(self._in_order.values())

    @property
    def held_names(self) -> list[Hashable]:
        """Return the names under which something is held back."""
        return [*self._held]

    def rest(self) -> list[Utterance]:
        """Return all that was held back."""
        waiting, self._in_order = self._in_order, {}
        said = [one for placed in waiting.values() for one in placed or ()]
        return said + [one for name in [*self._held] for one in self.release(name)]

    def hold(self, name: Hashable, utterances: Iterable[Utterance], *, blankless: bool = False) -> None:
        """Keep utterances back under a name, joined with what the same speaker said directly before."""
        held = self._held.setdefault(name, [])
        for one in utterances:
            if held and held[-1].speaker == one.speaker and one.contribution is None:
                held[-1] = replace(held[-1], text=f"{held[-1].text}{'' if blankless else ' '}{one.text}")
            else:
                held.append(one)
        if not held:
            del self._held[name]

    def last_speaker(self, name: Hashable) -> str:
        """Return who speaks last of what is held back under a name."""
        return self._held[name][-1].speaker

    def awaits(self, item: str) -> None:
        """Keep a place for what was spoken, whose transcription comes later."""
        self._in_order.setdefault(item, None)

    def place(self, item: str, utterances: list[Utterance]) -> list[Utterance]:
        """Put what was said in its place, the last one where none was kept; return what nothing before is awaited of.

        Nothing is kept waiting for more than :data:`_MOST_AWAITED` others.
        """
        self._in_order[item] = utterances
        ready: list[Utterance] = []
        while self._in_order and (
            next(iter(self._in_order.values())) is not None or len(self._in_order) > _MOST_AWAITED
        ):
            ready += self._in_order.pop(next(iter(self._in_order))) or []
        return ready

    def put(self, name: Hashable, utterances: list[Utterance]) -> None:
        """Keep these utterances back under a name, instead of those that were."""
        self._held[name] = utterances

    def is_long(self, name: Hashable) -> bool:
        """Return whether so much is held back under a name that it is said now."""
        return sum(len(one.text) for one in self._held.get(name, ())) > LONGEST_HELD

    def release(self, name: Hashable) -> list[Utterance]:
        """Return what is held back under a name; a turn, whose name is a tuple, is not said again."""
        if isinstance(name, tuple):
            self.is_new(*name)
        released = self._held.pop(name, [])
        for one in released:
            self.note(one)
        return released

    def note(self, said: Utterance) -> None:
        """Remember what was said under a key, so that it can be corrected."""
        if said.key is not None:
            self._said[said.key] = said
            self._forget(self._said)

    def was_said(self, key: Hashable) -> bool:
        return key in self._said

    def drop(self, name: Hashable) -> None:
        """Keep nothing back under a name any more."""
        self._held.pop(name, None)

    def newest(self, key: Hashable) -> Utterance | None:
        """Return what is held back under a name, or was said under it as a key."""
        return self._held[key][-1] if self._held.get(key) else self._said.get(key)

    def corrected(self, key: Hashable, *, text: str | None = None, speaker: str | None = None) -> list[Heard]:
        """Return the correction of what was said under a key; nothing where it says the same, or nothing was."""
        before = self._said.get(key)
        if before is None:
            return []
        after = replace(
            before, text=before.text if text is None else text, speaker=before.speaker if speaker is None else speaker
        )
        if after == before or not after.text:
            return []
        self._said[key] = after
        return [
            CorrectedUtterance(
                key,
                None if after.text == before.text else after.text,
                None if after.speaker == before.speaker else after.speaker,
            )
        ]

    def first_of(self, key: Hashable, edited: Hashable | None = None) -> Hashable:
        """Return the key of the message that one with a key edits, and an edit of that one too, or its own key."""
        if edited is None:
            return key
        self._first[key] = self._first.get(edited, edited)
        self._forget(self._first)
        return self._first[key]

    def said_or_corrected(self, key: Hashable, said: Utterance) -> list[Heard]:
        """Return what was said under a key; where something was before, its correction, if it is the same speaker's."""
        if (before := self._said.get(key)) is not None:
            return self.corrected(key, text=said.text) if before.speaker == said.speaker else []
        named = replace(said, at=None, key=key)
        self.note(named)
        return [named]

    def relabel(self, name: Hashable, speaker: str) -> None:
        """Let somebody else say what is held back under a name."""
        if name in self._held:
            self._held[name] = [replace(one, speaker=speaker) for one in self._held[name]]

    def note_part(self, part: Hashable, key: Hashable, text: str) -> None:
        """Remember which utterance a final part belongs to, and what it says."""
        self._parts[part] = (key, text)
        self._forget(self._parts)

    def hold_part(self, part: Hashable, name: Hashable, utterances: Sequence[Utterance]) -> None:
        """Keep a final part back, which may come again in other words if one speaker says all of it."""
        self.hold(name, [replace(one, key=(part, place)) for place, one in enumerate(utterances)])
        if len(utterances) == 1:
            self.note_part(part, self._held[name][-1].key, utterances[0].text)

    def is_part(self, part: Hashable) -> bool:
        return part in self._parts

    def text_of_part(self, part: Hashable) -> str:
        """Return what a final part says; an empty text if it is not remembered."""
        return self._parts[part][1] if part in self._parts else ""

    def corrected_part(self, part: Hashable, text: str) -> list[Heard]:
        """Take a part that comes again in other words; return the correction of its utterance, if that was said."""
        key, before = self._parts[part]
        if not text or text == before:
            return []
        self._parts[part] = (key, text)
        for held in self._held.values():
            for place, one in enumerate(held):
                if one.key == key:
                    held[place] = replace(one, text=one.text.replace(before, text, 1))
                    return []
        said = self._said.get(key)
        return [] if said is None else self.corrected(key, text=said.text.replace(before, text, 1))

    def was_seen(self, name: Hashable) -> bool:
        return name in self._seen

    def is_new(self, *name: Hashable) -> bool:
        """Return whether no message of this name came before, and remember it."""
        if name in self._seen:
            return False
        self._seen[name] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return True

    def unsaid(self, stream: str, said: Utterance) -> Utterance | None:
        """Return what is new of a segment with its times; None where it was said before.

        Segments with the same words that overlap in time are one, also where their times shift. One that begins with
        the words of another at the same time goes on with it.
        """
        if said.at is None:
            return said
        now, end = words(said.text), max(said.until if said.until is not None else said.at, said.at)
        key = (stream, said.speaker, tuple(now))
        before = self._segments.setdefault(key, [])
        is_again = any(said.at == start or (said.at < until and start < end) for start, until in before)
        before.append((said.at, end))
        del before[:-_NEAR]
        self._forget(self._segments)
        newest = self._newest.setdefault((stream, said.speaker), [])
        self._forget(self._newest)
        count = 0
        for start, until, known in () if is_again else newest:
            if said.at < until and start < end:
                whole = len(known) if now[: len(known)] == known else 0
                count = max(count, whole, len(now) if known[: len(now)] == now else 0, _overlap(known, now))
        newest.append((said.at, end, now))
        del newest[:-_NEAR]
        rest = "" if is_again else without(said.text, count)
        return replace(said, text=rest) if rest else None

    @staticmethod
    def _forget(known: OrderedDict[Any, Any]) -> None:
        if len(known) > REMEMBERED:
            known.popitem(last=False)


def _overlap(known: list[str], now: list[str]) -> int:
    count = overlap(known, now)
    return count if count > 1 else 0
