"""Lines that begin with a moment as programs write it: ``2023-05-03T09:00:01.123Z Ida: …``, ``1683104401 <ida> …``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.formats.dated_lines import split_names
from context_builder.transcript.labels import LabelledLine, Labels
from context_builder.transcript.moments import epoch_seconds, iso, of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_LINE: Final = re.compile(
    r"[\[(]?(?:(?P<iso>\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?|"
    r"[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9}|(?= UTC)))"
    r"\s?(?:Z|UTC|[+-]\d\d:?\d\d)?)|(?P<epoch>1\d{9}(?:\.\d{1,6}|\d{3})?))[\])]?\s*[-–|:]?\s+"
    r"(?:\[?(?:INFO|DEBUG|NOTICE|WARN(?:ING)?)\]?[\s:-]+"
    r"(?:[\w.]{1,60}(?::| -)\s+(?=[^\s:]{1,40}[^:\n]{0,40}:\s))?)?(?P<rest>\S.*)"
)
_NICK: Final = re.compile(r"<[ @+%~&!]?(?P<nick>[^<>\n]{1,64})>\s+(?P<text>.*)|\* (?P<nick2>\S{1,64}) (?P<text2>.*)")


def is_stamped(text: str) -> bool:
    """Return whether a text's first lines begin so."""
    lines = [line for line in text[:4000].split("\n") if line.strip()][:5]
    return bool(lines) and sum(bool(_LINE.match(line)) for line in lines) > len(lines) / 2


def read_stamped(source: Source) -> Transcript:
    """Return what the lines say; one without a moment goes on with the one before."""
    return of_chat(_said(source))


def _said(source: Source) -> Iterator[tuple[float, Utterance]]:
    entries: list[tuple[int, re.Match[str], list[str]]] = []
    for number, line in enumerate(source.text.split("\n"), start=1):
        found = _LINE.match(line)
        if found and found["rest"].startswith("*** "):  # of a server of IRC
            continue
        if found:
            entries.append((number, found, [found["rest"]]))
        elif entries:
            entries[-1][2].append(line)
        elif line.strip():
            source.problem("text without a moment before it", number)
    labels = Labels([lines[0] for *_, lines in entries])
    spoken = [labels.line(lines[0]) for *_, lines in entries]
    if not any(one.speaker for one in spoken) and (named := split_names([lines[0] for *_, lines in entries])):
        spoken = [LabelledLine(who, text) for who, text in named]
    for (number, found, lines), told in zip(entries, spoken, strict=True):
        nick = _NICK.match(lines[0])
        who = name_of(nick["nick"] or nick["nick2"]) if nick else told.speaker or UNKNOWN_SPEAKER
        text = (nick["text"] or nick["text2"] or "") if nick else told.text
        with source.one_entry(number):
            moment = (
                iso(found["iso"].replace(",", ".")).timestamp()
                if found["iso"]
                else epoch_seconds(float(found["epoch"]), "a moment")
            )
            if words := plain(" ".join([text, *lines[1:]])):
                yield moment, Utterance(who, words)
