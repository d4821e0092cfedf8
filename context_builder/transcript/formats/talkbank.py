"""CHAT (.cha), as TalkBank and CLAN write it: ``*IDA:``, and tiers about what she says.

https://talkbank.org/0info/manuals/CHAT.html
"""

from __future__ import annotations

import re
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import in_heading
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, speaker_name

_BULLET: Final = re.compile("\x15(?:[^\x15\\d]*)(\\d+)_(\\d+)\x15")
_CODES: Final = re.compile(r"\[[^\[\]]*\]|&[=~+-]?\S+|[<>‹›↑↓]|\+[/.\"!?,<^=]+|\(\.+\)")
"""What is beside the words: comments, events, fillers, and signs of how something was said."""


def is_chat(text: str) -> bool:
    return bool(re.match(r"\s*@(?:UTF8|Begin|PID|Font|Window)\b", text[:400]))


def read_chat_file(source: Source) -> Transcript:
    """Return what the main tiers say, by the participants' names."""
    lines: list[str] = []
    for line in source.text.split("\n"):
        if line.startswith(("\t", " ")) and lines:
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    names = _names(next((line for line in lines if line.startswith("@Participants:")), ""))
    said: list[Utterance] = []
    for line in lines:
        who, colon, text = line.partition(":")
        if not (who.startswith("*") and colon):
            continue
        times = _BULLET.search(text)
        words = re.sub(r" (?=[.?!])", "", plain(_CODES.sub(" ", _BULLET.sub(" ", text))))
        start, end = ((int(one) / 1000) for one in times.groups()) if times else (None, None)
        if re.search(r"\w", words) and words not in ("xxx.", "yyy.", "www.", "0."):
            name = who.removeprefix("*").strip()
            said.append(Utterance(speaker_name(names.get(name, name)), words, start, until=end))
    dates = [line.partition(":")[2] for line in lines if line.startswith("@Date:")]
    return Transcript(said, in_heading(dates))


def _names(line: str) -> dict[str, str]:
    """Return what the participants are called: a code, a name that may be missing, and a role."""
    parts = [one.split() for one in line.partition(":")[2].split(",")]
    return {one[0]: one[1].replace("_", " ") for one in parts if len(one) > 2}
