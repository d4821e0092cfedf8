"""A transcript file is read here, in a format that a table finds by the ending of its name or by what it holds."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from context_builder.errors import TranscriptError
from context_builder.transcript.archive import read_folder, read_zip, refuse_large
from context_builder.transcript.decoding import decode
from context_builder.transcript.formats import (
    ass,
    documents,
    html_exports,
    irc,
    json_lines,
    lines,
    message_blocks,
    speaker_blocks,
    subtitles,
    tables,
    ttml,
    whatsapp,
    word_document,
    zoom_chat,
)
from context_builder.transcript.moments import in_file_name
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript

Read = Callable[[Source], Transcript]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Is a format that a text shows by what it holds."""

    name: str
    matches: Callable[[str], bool]
    read: Read


TEXTS: Final = (
    TextFormat("subtitles", subtitles.is_subtitles, subtitles.read_subtitles_in_text),
    TextFormat("a page of a chat", html_exports.is_html, html_exports.read_html),
    TextFormat("XML of captions", ttml.is_xml, ttml.read_ttml),
    TextFormat("JSON", documents.is_json, documents.read_document),
    TextFormat("Audacity's labels", tables.is_labels, tables.read_tsv),
    TextFormat("SubStation Alpha", ass.is_ass, ass.read_ass),
    TextFormat("IRC", irc.is_irc, irc.read_irc),
    TextFormat("messages in blocks", message_blocks.is_message_blocks, message_blocks.read_message_blocks),
    TextFormat("WhatsApp", whatsapp.is_whatsapp, whatsapp.read_whatsapp),
    TextFormat("Zoom's chat", zoom_chat.is_zoom_chat, zoom_chat.read_zoom_chat),
    TextFormat("Otter, Teams or Fireflies", speaker_blocks.has_speaker_blocks, speaker_blocks.read_speaker_blocks),
    TextFormat("lines", lambda _: True, lines.read_lines),
)


def _read_text(source: Source) -> Transcript:
    return next(one for one in TEXTS if one.matches(source.text)).read(source)


ENDINGS: Final[dict[str, Read]] = {
    ".jsonl": json_lines.read_json_lines,
    ".ndjson": json_lines.read_json_lines,
    ".json": documents.read_document,
    ".json3": documents.read_document,
    ".vtt": subtitles.read_subtitles,
    ".srt": subtitles.read_subtitles,
    ".sbv": subtitles.read_subtitles,
    ".ttml": ttml.read_ttml,
    ".dfxp": ttml.read_ttml,
    ".xml": ttml.read_ttml,
    ".srv1": ttml.read_ttml,
    ".srv2": ttml.read_ttml,
    ".srv3": ttml.read_ttml,
    ".tsv": tables.read_tsv,
    ".aud": tables.read_tsv,
    ".csv": tables.read_csv,
    ".ass": ass.read_ass,
    ".ssa": ass.read_ass,
    ".lrc": lines.read_lyrics,
    ".txt": _read_text,
    ".md": _read_text,
    ".log": _read_text,
    ".html": html_exports.read_html,
    ".htm": html_exports.read_html,
    ".weechatlog": _read_text,
    ".docx": _read_text,
}


def read_transcript(path: Path, *, channel: str | None = None, strict: bool = False) -> Transcript:
    """Return the transcript in a file, a ``.zip`` of an export, or a folder of a Slack export.

    The ending of the name tells the format; text shows by itself whose it is. What cannot be read is among the
    transcript's problems, with its line, and the rest is read; with ``strict`` it is an error. ``channel`` is one of
    those of an export. Raises :class:`TranscriptError` naming the file, and the line where there is one.
    """
    source = Source(str(path))
    try:
        found = _read(path, source, channel)
    except OSError as error:
        raise TranscriptError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise TranscriptError(f"{source.name}: {error}") from None
    except RecursionError:
        raise TranscriptError(f"{source.name}: nested too deeply") from None
    if strict and source.problems:
        more = f" (and {len(source.problems) - 1} more)" if len(source.problems) > 1 else ""
        raise TranscriptError(f"{source.problems[0]}{more}")
    if not found.utterances:
        why = next((f"; {told}" for told in (*source.problems, *source.notes)), "")
        raise TranscriptError(f"{path}: holds nothing that anybody said{why}")
    started = found.started or in_file_name(path.name)
    return replace(found, started=started, problems=tuple(source.problems), notes=tuple(source.notes))


def _read(path: Path, source: Source, channel: str | None) -> Transcript:
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such file")
    if path.is_dir():
        return read_folder(path, source, channel)
    if path.suffix.lower() == ".zip":
        return read_zip(path, source, channel, _read_bytes)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"unknown format; use .zip, {', '.join(ENDINGS)}")
    refuse_large(path)
    return _read_bytes(path.name, path.read_bytes(), source)


def _read_bytes(name: str, raw: bytes, source: Source) -> Transcript:
    """Return the transcript in a file's bytes; the name's ending tells what they are."""
    if word_document.is_word_document(raw):
        source.text = word_document.text_of(raw)
        return _read_text(source)
    source.text = decode(raw, source)
    ending = PurePosixPath(name).suffix.lower()
    read = ENDINGS.get(ending, _read_text)
    if read is ttml.read_ttml and not source.text.lstrip().startswith("<"):
        read = _read_text
    return read(source)
