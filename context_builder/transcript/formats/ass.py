"""Advanced SubStation Alpha's subtitles (.ass, .ssa): ``Dialogue`` lines, whose columns ``Format`` names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from context_builder.transcript.formats.subtitles import plain
from context_builder.transcript.formats.whisper import labelled
from context_builder.transcript.offsets import offset
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_COLUMNS: Final = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
"""In the order of version 4+, for a file that names none."""


_BRACES: Final = re.compile(r"(\{[^{}]*\})")
"""Styles, and remarks that are not shown."""

_SCALE: Final = re.compile(r"\\p(\d)")
"""What follows is drawn, but for a scale of zero: https://aegisub.org/docs/latest/ass_tags/#drawing-tags."""


def _shown(text: str) -> str:
    """Return what is shown as text, of a line with styles and drawings."""
    shown = ""
    draws = False
    for place, part in enumerate(_BRACES.split(text)):
        if place % 2:
            draws = scales[-1] != "0" if (scales := _SCALE.findall(part)) else draws
        elif not draws:
            shown += part
    return plain(shown.replace("\\n", " ").replace("\\h", " "))


def is_ass(text: str) -> bool:
    return text[:400].lstrip("\ufeff \n").lower().startswith("[script info]")


def read_ass(source: Source) -> Transcript:
    """Return what is said in the subtitles, in the order of time; comments are not said."""
    columns: Sequence[str] = _COLUMNS
    said: list[Utterance] = []
    events = False
    for number, line in enumerate(source.text.split("\n"), start=1):
        kind, _, rest = line.partition(":")
        if line.startswith("["):
            events = line.strip().lower() == "[events]"
        elif events and kind.strip() == "Format":
            columns = [one.strip().lower() for one in rest.split(",")]
        elif kind.strip() == "Dialogue":
            cells = dict(zip(columns, rest.split(",", len(columns) - 1), strict=False))
            with source.one_entry(number):
                if text := _shown(cells.get("text", "")):
                    start, end = offset(cells.get("start", "").strip()), offset(cells.get("end", "").strip())
                    name = name_of(cells.get("name", cells.get("actor", "")).strip()) or UNKNOWN_SPEAKER
                    said.append(Utterance(name, text, start, until=end))
    return Transcript(once(labelled(sorted(said, key=lambda one: one.at or 0.0))))
