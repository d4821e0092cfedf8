"""Transcripts of Jitsi Meet as text, as its gateway Jigasi writes them: ``<9:00:26 AM> Ida: …`` below a heading."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import in_heading, of_chat
from context_builder.transcript.offsets import offset, since_first
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of

_BEGINS: Final = re.compile(r"\s*Transcript of conference held at (?P<day>[^\n]{4,60}?) in room [^\n]*")
_ENDS: Final = re.compile(r"^[ \t]*End of transcript at ", re.MULTILINE)
_RULER: Final = re.compile(r"\s*_{10,}\s*")
_ENTRY: Final = re.compile(r"\s*<(?P<time>[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:\s?[AaPp]\.?[Mm]\.?)?)>\s+(?P<rest>\S.*)")
_SPOKEN: Final = re.compile(r"(?P<who>[^:]{1,120}):(?:\s+(?P<text>.*))?")


def is_jitsi(text: str) -> bool:
    """Return whether a text begins as these do."""
    return bool(_BEGINS.match(text))


def read_jitsi(source: Source) -> Transcript:
    """Return what was said; who joins, leaves or raises a hand stands without a colon, and is left out."""
    source.text = _ENDS.split(source.text, maxsplit=1)[0]

    def entry_in(line: str) -> tuple[str, str] | None:
        entry = _ENTRY.fullmatch(line)
        return (entry["time"], entry["rest"].strip()) if entry else None

    said: list[tuple[float, Utterance]] = []  # with the time of the day
    for number, time, (told, *more) in source.entries(entry_in):
        spoken = _SPOKEN.fullmatch(told)
        below = (line for line in more if not _RULER.fullmatch(line))  # it goes on in lines of eighty characters
        if spoken and (text := plain(" ".join([spoken["text"] or "", *below]))):
            with source.one_entry(number):
                said.append((offset(time), Utterance(name_of(spoken["who"]), text)))
    times = [at for at, _ in said]
    heading = _BEGINS.match(source.text)
    day = in_heading([heading["day"]]) if heading else None
    start = (day.replace(tzinfo=None) + timedelta(seconds=times[0])).timestamp() if day and times else 0.0
    found = of_chat((start + at, one) for at, (_, one) in zip(since_first(times), said, strict=True))
    return found if day else Transcript(found.utterances)
