"""Advanced SubStation Alpha's subtitles (.ass, .ssa): ``Dialogue`` lines, whose columns ``Format`` names."""

from __future__ import annotations

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
                if text := plain(cells.get("text", "").replace("\\n", " ").replace("\\h", " ")):
                    start, end = offset(cells.get("start", "").strip()), offset(cells.get("end", "").strip())
                    name = name_of(cells.get("name", cells.get("actor", "")).strip()) or UNKNOWN_SPEAKER
                    said.append(Utterance(name, text, start, until=end))
    return Transcript(once(labelled(sorted(said, key=lambda one: one.at or 0.0))))
