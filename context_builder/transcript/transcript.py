"""A transcript file is read here, in a format that a table finds by the ending of its name or by what it holds."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from context_builder.errors import TranscriptError
from context_builder.transcript.archive import read_folder, read_zip, refuse_large, unpacked
from context_builder.transcript.clocks import with_clocks
from context_builder.transcript.decoding import decode
from context_builder.transcript.fields import parse
from context_builder.transcript.formats import (
    corpora,
    dated_lines,
    documents,
    element_text,
    exchanges,
    html_exports,
    irc,
    jitsi,
    json_lines,
    lines,
    mail,
    markdown,
    message_blocks,
    office_documents,
    other_subtitles,
    proceedings,
    records,
    speaker_blocks,
    subtitles,
    tables,
    threema,
    ttml,
    whatsapp,
    xml_documents,
    zoom_chat,
)
from context_builder.transcript.moments import in_file_name, in_heading
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript

Read = Callable[[Source], Transcript]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format that a text shows by what it holds: ``matches`` is asked about the text, ``read`` gets its source."""

    name: str
    matches: Callable[[str], object]
    read: Read


_FENCED: Final = re.compile(r"^```(?:json\w*)?[ \t]*\n(?=\s*[\[{]\s*[\[{\"])", re.MULTILINE)

_SHOWN: Final = 0.2
"""Lines of a page that begin what somebody says, at least; other pages have labels, too."""

_OBJECT: Final = re.compile(r"^(?=\{\s*\"|\[\s*\{\s*\")", re.MULTILINE)

_NAMED: Final = re.compile(r"([A-Z][^\W\d_]*[a-z](?: [A-Z][\w.'’-]*){0,3}): \S")
"""Begins what somebody says, unlike a line of a log."""

_EVENTS: Final = re.compile(r"\s*(?:(?:event|id|retry):[^\n]*\n|:[^\n]*\n|\n){0,9}data:\s*\{")
"""Begins server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

TEXTS: Final = (
    TextFormat("Scenarist's captions", other_subtitles.is_scenarist, other_subtitles.read_scenarist),
    TextFormat("an editor's subtitles", subtitles.is_of_editor, subtitles.read_of_editor),
    TextFormat("subtitles", subtitles.is_subtitles, subtitles.read_subtitles_in_text),
    TextFormat("older subtitles", other_subtitles.is_library_subtitles, other_subtitles.read_library_subtitles),
    TextFormat("a page of a chat", html_exports.is_chat_page, html_exports.read_html),
    TextFormat("a page", html_exports.is_html, lambda source: _read_page(source)),
    TextFormat("XML", ttml.is_xml, xml_documents.read_xml),
    TextFormat("the European Parliament", proceedings.is_parliament, proceedings.read_parliament),
    TextFormat("ChatML", exchanges.is_marked, exchanges.read_marked),
    TextFormat("server-sent events", _EVENTS.match, lambda source: _read_events(source)),
    TextFormat("JSON", documents.is_json, documents.read_document),
    TextFormat(
        "JSON in Markdown", lambda text: _FENCED.search(text[:_PROBE]) is not None, lambda source: _read_fenced(source)
    ),
    TextFormat("JSON below a program's log", lambda text: _below_log(text) > 0, documents.read_document),
    TextFormat("a table", tables.is_table, tables.read_table),
    TextFormat("Audacity's labels", tables.is_labels, tables.read_tsv),
    TextFormat("SubStation Alpha", other_subtitles.is_ass, other_subtitles.read_ass),
    TextFormat("TextGrid", corpora.is_textgrid, corpora.read_textgrid),
    TextFormat("CHAT", corpora.is_chat, corpora.read_chat_file),
    TextFormat("e-mail", mail.is_mail, mail.read_mail),
    TextFormat("Jitsi", jitsi.is_jitsi, jitsi.read_jitsi),
    TextFormat("Element's text", element_text.is_element_text, element_text.read_element_text),
    TextFormat("Threema", threema.is_threema, threema.read_threema),
    TextFormat("lines with moments", dated_lines.is_stamped, dated_lines.read_stamped),
    TextFormat("IRC", irc.is_irc, irc.read_irc),
    TextFormat("records", records.is_records, records.read_records),
    TextFormat("messages in blocks", message_blocks.is_message_blocks, message_blocks.read_message_blocks),
    TextFormat("WhatsApp", whatsapp.is_whatsapp, whatsapp.read_whatsapp),
    TextFormat("Zoom's chat", zoom_chat.is_zoom_chat, zoom_chat.read_zoom_chat),
    TextFormat("lines with dates", dated_lines.is_dated, dated_lines.read_dated),
    TextFormat("proceedings", proceedings.is_proceedings, proceedings.read_proceedings),
    TextFormat("a parliament's report", proceedings.is_report, proceedings.read_report),
)
PLAIN: Final = (
    TextFormat("Otter, Teams or Fireflies", speaker_blocks.has_speaker_blocks, speaker_blocks.read_speaker_blocks),
    TextFormat("lines", lambda _: True, lines.read_lines),
)
"""What has no marks of its own, and where times may be those of minutes; the first that fits is taken."""


def read_text(source: Source) -> Transcript:
    """Return the transcript in a text, in the format that it shows by itself."""
    around, text = markdown.transcript_in(_with_few_spaces(source.text))
    source.text = markdown.unmarked(text)
    known = next((one for one in TEXTS if one.matches(source.text)), None)
    if known is None:
        source.text = speaker_blocks.without_words(with_clocks(source.text))
        known = next(one for one in PLAIN if one.matches(source.text))
    found = known.read(source)
    source.left_out(len(around), "line", "around the transcript")
    return _of_day(replace(found, started=found.started or in_heading(around[:20])))


def _of_day(found: Transcript) -> Transcript:
    """Return a transcript whose times are those of the day, where the first one is the hour at which it began.

    They count from the midnight before.
    """
    first = next((one.at for one in found.utterances if one.at is not None), 0.0)
    for started in (found.started, found.started.astimezone()) if found.started and first >= _HOUR else ():
        midnight = started.replace(hour=0, minute=0, second=0, microsecond=0)
        if midnight != started and abs((started - midnight).total_seconds() - first) <= _HOUR / 2:
            return replace(found, started=midnight)
    return found


def _below_log(text: str) -> int:
    """Return where a transcript in JSON begins below the first lines; 0 where none does, other text follows, or what
    stands above was said."""
    begins = _OBJECT.search(text[:_PROBE])
    if begins is None or begins.start() == 0 or not text.rstrip().endswith(("}", "]")):
        return 0
    names = [one[1] for line in text[: begins.start()].split("\n") if (one := _NAMED.match(line))]
    if len(set(names)) < len(names) and len(set(names)) > 1:
        return 0
    try:
        documents.read_parsed(parse(text[begins.start() :]), Source(""))
    except ValueError:
        return 0
    return begins.start()


def _read_fenced(source: Source) -> Transcript:
    fence = _FENCED.search(source.text)
    source.text = source.text[fence.end() :].partition("```")[0] if fence else source.text
    return documents.read_document(source)


def _read_events(source: Source) -> Transcript:
    lines = [line[5:].strip() if line.startswith("data:") else "" for line in source.text.split("\n")]
    source.text = "\n".join("" if line == "[DONE]" else line for line in lines)
    return json_lines.read_json_lines(source)


def _read_page(source: Source) -> Transcript:
    source.text = html_exports.text_of_page(source.text)
    shown = sum(bool(line.strip()) for line in source.text.split("\n"))
    if html_exports.is_html(source.text):
        raise ValueError(f"no transcript was recognized in it; {READ}")
    found = _read_unnamed(source)
    told = [one for one in found.utterances if one.speaker != UNKNOWN_SPEAKER or one.at is not None]
    names = [one.speaker.partition(" (")[0] for one in told if one.speaker != UNKNOWN_SPEAKER]
    is_talk = len(set(names)) < len(names) or len(names) == 2  # two may have said a sentence each
    if len(told) < max(2, _SHOWN * shown) or not (is_talk or all(one.at is not None for one in found.utterances)):
        raise ValueError(f"no transcript was recognized in it; {READ}")
    return found


def _read_unnamed(source: Source) -> Transcript:
    """Return the transcript in a text whose name does not tell what it is: by what it holds, or its labels.

    Raises :class:`ValueError` for a text that is like no transcript.
    """
    found = read_text(source)
    if all(one.speaker == UNKNOWN_SPEAKER and one.at is None for one in found.utterances):
        raise ValueError(f"no transcript was recognized in it; {READ}")
    return found


def _refuse_script(_: Source) -> Transcript:
    raise ValueError("a script that makes a video (.wts of whisper.cpp), not a transcript; use its .json, .srt or .txt")


ENDINGS: Final[dict[str, Read]] = {
    ".jsonl": json_lines.read_json_lines,
    ".ndjson": json_lines.read_json_lines,
    ".json": documents.read_document,
    ".js": documents.read_document,
    ".json3": documents.read_document,
    ".json5": documents.read_document,
    ".jsonc": documents.read_document,
    ".otr": documents.read_document,
    ".vtt": subtitles.read_subtitles,
    ".srt": subtitles.read_subtitles,
    ".sbv": subtitles.read_subtitles,
    ".ttml": xml_documents.read_xml,
    ".dfxp": xml_documents.read_xml,
    ".xml": xml_documents.read_xml,
    ".eaf": xml_documents.read_xml,
    ".trs": xml_documents.read_xml,
    ".exb": xml_documents.read_xml,
    ".srv1": xml_documents.read_xml,
    ".srv2": xml_documents.read_xml,
    ".srv3": xml_documents.read_xml,
    ".tsv": tables.read_tsv,
    ".aud": tables.read_tsv,
    ".csv": tables.read_csv,
    ".ass": other_subtitles.read_ass,
    ".ssa": other_subtitles.read_ass,
    ".lrc": lines.read_lyrics,
    ".stm": corpora.read_stm,
    ".ctm": corpora.read_ctm,
    ".mbox": mail.read_mail,
    ".yaml": documents.read_yaml,
    ".yml": documents.read_yaml,
    ".wts": _refuse_script,
    ".sub": read_text,
    ".txt": read_text,
    ".md": read_text,
    ".log": lambda source: _read_unnamed(source),
    ".html": read_text,
    ".htm": read_text,
    ".weechatlog": read_text,
    ".docx": read_text,
    ".rtf": read_text,
}
"""By the ending of a file's name; any other file shows by itself what it is."""

READ: Final = (
    "what is read: transcripts of speech services and meeting tools (JSON, text, .docx, tables),"
    " subtitles, chats,"
    " e-mail, PDF, and .zip of an export"
)

_KNOWN: Final = (
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"ID3", "a sound recording"),
    (b"RIFF", "a recording or a picture"),
    (b"OggS", "a sound recording"),
    (b"fLaC", "a sound recording"),
    (b"\x1a\x45\xdf\xa3", "a video"),
    (b"SQLite format 3", "a database"),
    (b"\xd0\xcf\x11\xe0", "a document of an older office program (.doc, .xls, .msg)"),
    (b"PAR1", "a table of Parquet"),
    *((mark, "a packed file") for mark in (b"PK\x03\x04", b"7z\xbc\xaf", b"Rar!")),
)
"""What is not text, by its first bytes."""

_OF_ISO: Final = b"ftyp"
"""Behind the first four bytes of MPEG-4 and its like: https://www.iso.org/standard/83102.html."""

_OFFICE: Final = ((b"xl/workbook", "a spreadsheet (to be saved as .csv)"), (b"ppt/presentation", "a presentation"))
"""What stands in a packed file of an office program."""

_VECTOR_GRAPHIC: Final = re.compile(r"\s*(?:<[?!][^>]*>\s*)*<svg[\s>]", re.IGNORECASE)

_SPACES: Final = re.compile(r"[^\S\n]{257,}")
"""More blanks in a line than anybody writes, which patterns would look through again and again."""

_HOUR: Final = 3600.0
_MOST_SPACES: Final = 256
_PROBE: Final = 4096
_CONTROL: Final = 0.05
"""Part of the characters of a text that may be control characters."""


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
    refuse_large(path)
    return _read_bytes(path.name, path.read_bytes(), source)


def _read_bytes(name: str, raw: bytes, source: Source) -> Transcript:
    """Return the transcript in a file's bytes; the name's ending tells what they are, or they do."""
    for is_of_kind, text_of in office_documents.OFFICE_DOCUMENTS:
        if is_of_kind(raw):
            source.text = text_of(raw)
            return read_text(source)
    if other_subtitles.is_ebu(raw):
        return other_subtitles.read_ebu(raw)
    if raw.startswith(b"\x1f\x8b"):
        return _read_bytes(name.removesuffix(".gz"), unpacked(raw), source)
    if known := _not_text(raw):
        raise ValueError(f"{known}, not a transcript; {READ}")
    source.text = _with_few_spaces(decode(raw, source))
    if _is_binary(source.text[:_PROBE]):
        raise ValueError(f"not text; {READ}")
    read = ENDINGS.get(PurePosixPath(name).suffix.lower(), _read_unnamed)
    if _VECTOR_GRAPHIC.match(source.text):
        raise ValueError(f"a picture, not a transcript; {READ}")
    if read is xml_documents.read_xml and not source.text.lstrip().startswith("<"):
        read = read_text
    return read(source)


def _not_text(raw: bytes) -> str | None:
    """Return what a file is that is no text; None of any other."""
    if raw[4:8] == _OF_ISO:
        return "a recording or a picture"
    known = next((kind for begins, kind in _KNOWN if raw.startswith(begins)), None)
    return next((kind for part, kind in _OFFICE if known == "a packed file" and part in raw), known)


def _with_few_spaces(text: str) -> str:
    return _SPACES.sub(lambda run: run.group()[:_MOST_SPACES], text)


def _is_binary(text: str) -> bool:
    allowed = "\n\t\f\x15\x1b\x02\x03\x0f\x16\x1d\x1f"  # of IRC, CHAT and terminals
    control = sum(one < " " and one not in allowed for one in text)
    return control > _CONTROL * len(text)
