"""An utterance is one thing somebody said, and a transcript is all that was said in a recording or a chat."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

UNKNOWN_SPEAKER: Final = "Unknown"
"""Who spoke when the recording does not say."""

ASSISTANT: Final = "Consilience"
"""Name that nobody but the assistant has."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """An utterance is what somebody said at some time.

    ``at`` is in seconds from the start of the recording, ``None`` when the recording does not
    say; ``until`` is when it ended. ``contribution`` is the metadata of an assistant's contribution, ``None``
    for what people said. ``key`` names it in its stream, where it may be corrected later.
    """

    speaker: str
    text: str
    at: float | None = None
    contribution: Mapping[str, object] | None = None
    until: float | None = field(default=None, compare=False)
    key: Hashable = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CorrectedUtterance:
    """A later text or speaker of the utterance with a ``key``; what is None stays as it was."""

    key: Hashable
    text: str | None = None
    speaker: str | None = None


Heard = Utterance | CorrectedUtterance


def corrected(heard: Iterable[Heard]) -> list[Utterance]:
    """Return the utterances of a stream as they are at its end."""
    said: list[Utterance] = []
    places: dict[Hashable, int] = {}
    for one in heard:
        if isinstance(one, Utterance):
            if one.key is not None:
                places[one.key] = len(said)
            said.append(one)
        elif (place := places.get(one.key)) is not None:
            before = said[place]
            said[place] = replace(before, text=one.text or before.text, speaker=one.speaker or before.speaker)
    return said


@dataclass(frozen=True, slots=True)
class Transcript:
    """The utterances of a file in the order in which they were said.

    ``started`` is the moment, with its offset from UTC, at which ``at`` is zero; ``None`` where the file has times from
    its beginning alone, or none. ``problems`` says of each thing that could not be read where it is and what is wrong;
    ``notes`` is what else its reader should know.
    """

    utterances: list[Utterance]
    started: datetime | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def said_at(self, utterance: Utterance) -> datetime | None:
        """Return the moment of an utterance, where the file tells."""
        if self.started is None or utterance.at is None:
            return None
        return moment_after(self.started, utterance.at)


def moment_after(started: datetime, seconds: float) -> datetime | None:
    """Return the moment so many seconds after the start; None beyond the calendar."""
    try:
        return started + timedelta(seconds=seconds)
    except OverflowError:
        return None


def name_of(label: object) -> str:
    """Return a speaker's name on one line, without control characters; nobody but the assistant has its name."""
    name = " ".join("".join(" " if unicodedata.category(one) == "Cc" else one for one in str(label)).split())
    if name == ASSISTANT:
        return f"{name} (speaker)"
    return name or UNKNOWN_SPEAKER


def speaker_name(label: object) -> str:
    """Return how a speaker is called; those who are only told apart are numbered or lettered."""
    if label is None or isinstance(label, bool | dict | list) or label in ("", "?", "UU"):
        return UNKNOWN_SPEAKER
    name = name_of(label)
    if name.lower() == "unknown speaker":
        return UNKNOWN_SPEAKER
    is_told_apart = len(name) <= 4 and (name.isdigit() or (name[:-1].isdigit() and name[-1].isalpha()))
    is_letter = len(name) == 1 and unicodedata.category(name) != "Lo"  # a syllable or an ideograph may be a name
    return f"Speaker {name}" if is_letter or is_told_apart else name


def channel_name(channel: object, speaker: object = None) -> str:
    """Return how who speaks on a channel is called; each channel counts its own speakers."""
    return f"Channel {channel}" if speaker is None else f"Channel {channel} {speaker_name(speaker)}"
