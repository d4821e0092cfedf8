"""Subtitles of other programs: SubStation Alpha, and what libraries read.

* Advanced SubStation Alpha (.ass, .ssa): ``Dialogue`` lines, whose columns ``Format`` names
* SAMI (.smi), MicroDVD (.sub), MPL2 and TMPlayer, by pysubs2
* captions of television, by ttconv: Scenarist's (.scc, CTA-608) and EBU STL (.stl, EBU Tech 3264)
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from context_builder.transcript.fields import plain
from context_builder.transcript.formats.html_exports import bounded
from context_builder.transcript.formats.subtitles import untagged
from context_builder.transcript.labels import labelled, spoken
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
    return untagged(shown.replace("\\n", " ").replace("\\h", " "))


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


@dataclass(frozen=True, slots=True)
class _Kind:
    """A format by the name that pysubs2 has for it; ``begins`` matches its files, and ``line`` each of their lines."""

    name: str
    begins: re.Pattern[str]
    line: re.Pattern[str] | None = None


_KINDS: Final = (
    _Kind("sami", re.compile(r"\s*<sami\b", re.IGNORECASE)),
    _Kind("microdvd", re.compile(r"\s*\{\d+\}\s*\{\d*\}"), re.compile(r"\s*\{\d+\}\s*\{\d*\}.*")),
    _Kind("mpl2", re.compile(r"\s*\[\d+\]\s*\[\d*\]"), re.compile(r"\s*\[-?\d+\]\s*\[-?\d*\].*")),
    _Kind(
        "tmp",
        re.compile(r"\s*\d{1,2}:\d{2}:\d{2}:(?!\d\d(?:\s*[-–>]|\t))(?!\d\d .*\n\d\d:\d\d:\d\d:\d\d )\S"),
        re.compile(r"\s*\d{1,2}:\d{2}:\d{2}:.*"),
    ),
)
Event = tuple[int, int, str]
_RATE: Final = 25.0
"""Frames of a second, where a file of MicroDVD does not say."""


def is_library_subtitles(text: str) -> bool:
    return _kind(text) is not None


def _kind(text: str) -> _Kind | None:
    return next((one for one in _KINDS if one.begins.match(text[:400])), None)


def read_library_subtitles(source: Source) -> Transcript:
    """Return what is said in the subtitles; any other line is noted. Raises :class:`ValueError`."""
    kind = _kind(source.text)
    if kind is None:
        raise ValueError("not subtitles")
    for number, line in enumerate(source.text.split("\n") if kind.line else (), start=1):
        if line.strip() and kind.line and not kind.line.fullmatch(line):
            source.problem("not a subtitle", number)
    is_sami = kind.name == "sami"
    events = sorted(bounded(_events_of_sami, source.text) if is_sami else _events_of(kind.name, source.text))
    return transcript_of(events)


def transcript_of(events: Sequence[Event]) -> Transcript:
    """Return what subtitles say, which are two times in milliseconds and a text each."""
    entries = [text.split("\n") for _, _, text in events]
    said = [
        Utterance(line.speaker or UNKNOWN_SPEAKER, plain(line.text), start / 1000, until=end / 1000)
        for (start, end, _), lines in zip(events, spoken(entries), strict=True)
        for line in lines
    ]
    return Transcript(once(said))


def _events_of_sami(text: str) -> list[Event]:
    first, *rest = text.split("<!--")
    return _events_of("sami", first + "".join(one.partition("-->")[2] for one in rest))


def _events_of(kind: str, text: str) -> list[Event]:
    """Return the milliseconds and the text of each subtitle. Raises :class:`ValueError`."""
    from pysubs2 import SSAFile
    from pysubs2.exceptions import Pysubs2Error

    try:
        try:
            found = SSAFile.from_string(text, format_=kind)
        except Pysubs2Error:  # no rate of frames in its first line
            found = SSAFile.from_string(text, format_=kind, fps=_RATE)
    except Pysubs2Error as error:
        raise ValueError(f"not subtitles: {error}") from None
    return [(one.start, one.end, one.plaintext) for one in found if one.plaintext.strip()]


_EBU: Final = re.compile(rb"[\d ]{3}STL\d\d\.\d\d")


def is_scenarist(text: str) -> bool:
    return text.lstrip().startswith("Scenarist_SCC")


def is_ebu(raw: bytes) -> bool:
    return _EBU.match(raw) is not None


def read_scenarist(source: Source) -> Transcript:
    """Return what is said in Scenarist's captions. Raises :class:`ValueError` for another text."""
    return transcript_of(bounded(_of_scenarist, source.text))


def read_ebu(raw: bytes) -> Transcript:
    """Return what is said in subtitles of EBU STL. Raises :class:`ValueError` for another file."""
    return transcript_of(bounded(_of_ebu, raw.decode("latin-1")))


def _of_scenarist(text: str) -> list[Event]:
    from ttconv.scc import reader

    return _captions(lambda: reader.to_model(text.lstrip()))


def _of_ebu(text: str) -> list[Event]:
    from ttconv.stl import reader

    return _captions(lambda: reader.to_model(io.BytesIO(text.encode("latin-1"))))


def _captions(read: Callable[[], Any]) -> list[Event]:
    from ttconv import model

    logging.getLogger("ttconv").setLevel(logging.CRITICAL)  # what is odd in a file is not this program's to tell
    try:
        captions = [one for one in read().get_body().dfs_iterator() if isinstance(one, model.P)]
        return [
            (int((one.get_begin() or 0) * 1000), int((one.get_end() or one.get_begin() or 0) * 1000), _text_of(one))
            for one in captions
        ]
    except Exception as error:  # noqa: BLE001 a parser of a hostile format: whatever stops it, the file is told
        raise ValueError(f"captions that cannot be read ({type(error).__name__}: {str(error)[:100]})") from None


def _text_of(caption: Any) -> str:
    from ttconv import model

    parts = (
        one.get_text() if isinstance(one, model.Text) else "\n" * isinstance(one, model.Br)
        for one in caption.dfs_iterator()
    )
    return "".join(parts)
