"""Threema's export: ``<<< 3. May 2023 at 09:00:12 CEST: …`` was received, ``>>>`` was sent; other lines go on."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of
from context_builder.transcript.written_dates import WrittenDate, moment_of, order_of, written

_MESSAGE: Final = re.compile(
    r"(?P<mark><<<|>>>) "
    r"(?P<stamp>[^\n:]{4,40}\d:\d{2}(?::\d{2})?(?:\s?[AP]M)?(?: [A-Z]{2,5}(?:[+-]\d{1,2}(?::\d\d)?)?)?): "
    r"(?P<text>.*)"
)
_FILE: Final = re.compile(
    r"(?:Image|Photo|Video|Audio|File|Location|Bild|Foto|Datei|Standort|Vidéo|Fichier|Imagen|Archivo|Immagine) "
    r"\([^()]{1,200}\)"
)
_NAMED: Final = re.compile(r"messages?[-_ ](.{1,60})", re.IGNORECASE)


def is_threema(text: str) -> bool:
    """Return whether a text is an export of Threema, by its first line."""
    found = _MESSAGE.match(text.lstrip()[:400])
    return found is not None and written(found["stamp"]) is not None


def read_threema(source: Source) -> Transcript:
    """Return what was said; whoever exports it is ``Me``, and the other is named by the file, if anywhere."""
    named = _NAMED.fullmatch(PurePath(source.name).stem)
    other = name_of(named[1]) if named else UNKNOWN_SPEAKER

    def begins(line: str) -> tuple[tuple[str, WrittenDate], str] | None:
        found = _MESSAGE.fullmatch(line.strip())
        if found is None or (at := written(found["stamp"])) is None:
            return None
        return ("Me" if found["mark"] == ">>>" else other, at), found["text"]

    messages = source.entries(begins)
    order = order_of([at for _, (_, at), _ in messages])
    said: list[tuple[float, Utterance]] = []
    for number, (who, at), lines in messages:
        if (text := plain(" ".join(lines))) and not _FILE.fullmatch(text):
            with source.one_entry(number):
                said.append((moment_of(at, order).timestamp(), Utterance(who, text)))
    return of_chat(said)
