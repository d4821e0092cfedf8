"""Captions of television, which a library reads: Scenarist's (.scc, CTA-608) and EBU STL (.stl, EBU Tech 3264)."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from typing import Any, Final

from context_builder.transcript.formats.html_exports import bounded
from context_builder.transcript.formats.subtitles import read_subtitles
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript

_EBU: Final = re.compile(rb"[\d ]{3}STL\d\d\.\d\d")


def is_scenarist(text: str) -> bool:
    return text.lstrip().startswith("Scenarist_SCC")


def is_ebu(raw: bytes) -> bool:
    return _EBU.match(raw) is not None


def read_scenarist(source: Source) -> Transcript:
    """Return what is said in Scenarist's captions. Raises :class:`ValueError` for what is none."""
    source.text = bounded(_of_scenarist, source.text)
    return read_subtitles(source)


def read_ebu(raw: bytes, source: Source) -> Transcript:
    """Return what is said in subtitles of EBU STL. Raises :class:`ValueError` for what is none."""
    source.text = bounded(_of_ebu, raw.decode("latin-1"))
    return read_subtitles(source)


def _of_scenarist(text: str) -> str:
    from ttconv.scc import reader

    return _as_subrip(lambda: reader.to_model(text.lstrip()))


def _of_ebu(text: str) -> str:
    from ttconv.stl import reader

    return _as_subrip(lambda: reader.to_model(io.BytesIO(text.encode("latin-1"))))


def _as_subrip(model: Callable[[], Any]) -> str:
    from ttconv.srt import writer

    logging.getLogger("ttconv").setLevel(logging.CRITICAL)  # what is odd in a file is not this program's to tell
    try:
        return str(writer.from_model(model()))
    except Exception as error:  # noqa: BLE001 a parser of a hostile format: whatever stops it, the file is told
        raise ValueError(f"captions that cannot be read ({type(error).__name__}: {str(error)[:100]})") from None
