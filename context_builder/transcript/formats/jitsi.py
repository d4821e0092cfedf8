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
_ENDS: Final = re.compile(r"\s*End of transcript at .*")
_RULER: Final = re.compile(r"\s*_{10,}\s*")
_ENTRY: Final = re.compile(r"\s*<(?P<time>[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:\s?[AaPp]\.?[Mm]\.?)?)>\s+(?P<rest>\S.*)")
_SPOKEN: Final = re.compile(r"(?P<who>[^:]{1,120}):(?:\s+(?P<text>.*))?")


def is_jitsi(text: str) -> bool:
    """Return whether a text begins as these do."""
    return bool(_BEGINS.match(text))


def read_jitsi(source: Source) -> Transcript:
    """Return what was said; who joins, leaves or raises a hand stands without a colon, and is left out."""
    entries: list[tuple[float, str, list[str]]] = []  # the time of the day, who speaks, and the lines
    speaks = False
    for number, line in enumerate(source.text.split("\n"), start=1):
        if _ENDS.fullmatch(line):
            break
        if entry := _ENTRY.fullmatch(line):
            speaks = False
            with source.one_entry(number):
                if spoken := _SPOKEN.fullmatch(entry["rest"].strip()):
                    entries.append((offset(entry["time"]), name_of(spoken["who"]), [spoken["text"] or ""]))
                    speaks = True
        elif speaks and not _RULER.fullmatch(line):  # goes on below, in lines of eighty characters
            entries[-1][2].append(line)
    said = [(at, Utterance(who, text)) for at, who, lines in entries if (text := plain(" ".join(lines)))]
    times = [at for at, _ in said]
    begins = _BEGINS.match(source.text)
    day = in_heading([begins["day"]]) if begins else None
    first = (day.replace(tzinfo=None) + timedelta(seconds=times[0])).timestamp() if day and times else 0.0
    found = of_chat((first + at, one) for at, (_, one) in zip(since_first(times), said, strict=True))
    return found if day else Transcript(found.utterances)
