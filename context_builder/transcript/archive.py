"""Exports of several files, in a folder or a ``.zip``: Slack's, by channel and day, and others with one transcript.

Nothing is written: the files of a ``.zip`` are read where they are, whatever their names say, and none beyond a size.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, TypeVar

from context_builder.errors import TranscriptError
from context_builder.transcript.fields import parse
from context_builder.transcript.formats.slack import names_of, said_in, with_names
from context_builder.transcript.moments import of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript

LARGEST: Final = 512 * 2**20
"""Bytes of a file that is not packed, and of all that is read of an export."""

LARGEST_PACKED: Final = 128 * 2**20
"""Bytes of one file of a ``.zip``, unpacked."""

MOST_PACKED: Final = 200
"""Times smaller than its text that a file of a ``.zip`` may be; what people say is packed to about a tenth."""

_SMALL: Final = 16 * 2**20
"""Bytes up to which it does not matter."""

MOST_FILES: Final = 100_000
MOST_TRIED: Final = 50
"""Files of an export that are read to find the one in which something is said."""

USERS: Final = ("users.json", "org_users.json")
"""Who a Slack export's users are; the second in exports of an Enterprise Grid."""

MOST_LISTED: Final = 32 * 2**20
"""Bytes of a ``.zip``'s list of its files."""

_PLAIN: Final = b"PK\x05\x06"
_END_OF_LIST: Final = re.compile(rb"PK(?:\x05\x06|\x06\x06)")
"""Begin the records that tell the size of the list, of ZIP and of ZIP64 (APPNOTE.TXT, 4.3.14 and 4.3.16)."""

_LONGEST_END: Final = 2**16 + 200
"""Bytes of what follows the list of files: these records, and a comment."""

_IN_THE_OTHER: Final = 2**32 - 1
"""Stands in the plain record for a size that the other one has."""

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ _-]?\d*)?\.json", re.IGNORECASE)
_PART: Final = re.compile(r"message_\d{1,4}\.json")
"""Matches a part of one thread in an export of Messenger or Instagram."""

_ENDINGS: Final = (
    ".json", ".jsonl", ".ndjson", ".json5", ".vtt", ".srt", ".sbv", ".ttml", ".xml", ".dfxp", ".ass", ".smi", ".sub",
    ".tsv", ".csv", ".eaf", ".trs", ".exb", ".cha", ".textgrid", ".otr", ".stm", ".ctm", ".mbox", ".eml", ".docx",
    ".rtf", ".html", ".md", ".txt", ".log",
)  # fmt: skip
"""Of files that may be transcripts; of one recording in several formats, the first that there is tells most."""

_HIDDEN: Final = ("__MACOSX", ".")

T = TypeVar("T")


class TooLarge(ValueError):
    """Raised for an export that is larger than it may be, unpacked."""


Files = Mapping[str, Callable[[], bytes]]
"""What reads each file, by its path within the export."""


def unpacked(raw: bytes) -> bytes:
    """Return what a ``.gz`` holds. Raises :class:`ValueError` for one that is damaged, or larger than it may be."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(raw, max(_SMALL, min(LARGEST_PACKED, MOST_PACKED * len(raw))))
    except zlib.error as error:
        raise ValueError(f"not a .gz that can be read: {error}") from None
    if unpacker.unconsumed_tail:
        raise TooLarge("unpacked, it is larger than it may be")
    return found


def read_folder(folder: Path, source: Source, channel: str | None) -> Transcript:
    """Return what was said in a channel of a Slack export, or in all of them. Raises :class:`ValueError`."""
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes
        for pattern in ("*.json", "*/*.json")
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }
    above = {f"../{name}": (folder.parent / name).read_bytes for name in USERS if (folder.parent / name).is_file()}
    days = [name for name in found if _DAY.fullmatch(PurePosixPath(name).name)]
    if not days:  # whatever they are called
        days = [name for name in found if "/" not in name and not _is_about(name)]
    if not days:
        raise ValueError("holds no file of a Slack export, such as 2025-01-31.json")
    return _slack({**found, **above}, days, source, channel)


def read_zip(
    path: Path, source: Source, channel: str | None, read: Callable[[str, bytes, Source], Transcript]
) -> Transcript:
    """Return the transcript in a ``.zip``: of Slack, else of its one transcript. Raises :class:`ValueError`."""
    try:
        with path.open("rb") as file:
            refuse_long_list(file)
        with zipfile.ZipFile(path) as opened:
            files = _files_of(opened)
            days = [name for name in files if _DAY.fullmatch(PurePosixPath(name).name)]
            if days:
                return _slack(files, days, source, channel)
            return _only_one(files, source, read)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise ValueError("not a .zip, or one that is cut off") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or compressed in a way of its own
        raise ValueError(f"cannot be unpacked: {str(error)[:200]}") from None


def refuse_long_list(file: BinaryIO) -> None:
    """Raise :class:`ValueError` for a ``.zip`` whose list of files is longer than it may be, before that is read."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - _LONGEST_END))
    end = file.read()
    for found in _END_OF_LIST.finditer(end):  # whichever zipfile goes by
        begin, length = (12, 4) if found[0] == _PLAIN else (40, 8)
        size = int.from_bytes(end[found.start() + begin :][:length], "little")
        if MOST_LISTED < size != _IN_THE_OTHER:
            raise ValueError(f"has a list of files of more than {MOST_LISTED / 2**20:g} MiB")


def _files_of(opened: zipfile.ZipFile) -> dict[str, Callable[[], bytes]]:
    entries = [one for one in opened.infolist() if not one.is_dir()]
    if len(entries) > MOST_FILES:
        raise ValueError(f"holds more than {MOST_FILES:,} files")
    read = 0

    def content(entry: zipfile.ZipInfo) -> bytes:
        nonlocal read
        with opened.open(entry) as file:
            data = file.read(min(LARGEST_PACKED, LARGEST - read) + 1)
        read += len(data)
        for found, most, what in ((len(data), LARGEST_PACKED, f"its {entry.filename[:200]!r} "), (read, LARGEST, "")):
            if found > most:
                raise TooLarge(f"{what}unpacks to more than {most / 2**20:g} MiB")
        if len(data) > max(_SMALL, MOST_PACKED * entry.compress_size):
            raise TooLarge(f"its {entry.filename[:200]!r} is packed more than {MOST_PACKED} times smaller than it is")
        return data

    return {
        entry.filename.replace("\\", "/"): lambda entry=entry: content(entry)  # type: ignore[misc]
        for entry in entries
        if not any(part.startswith(_HIDDEN) and part != ".." for part in PurePosixPath(entry.filename).parts)
    }


def _slack(files: Files, days: Iterable[str], source: Source, channel: str | None) -> Transcript:
    names: dict[str, str] = {}
    for name in sorted(files, key=lambda one: PurePosixPath(one).name != USERS[1]):
        if PurePosixPath(name).name in USERS:
            names |= _parsed(files, name, source, names_of) or {}
    source.names = {**source.names, **names}
    channels: dict[str, list[str]] = {}
    for day in sorted(days):
        channels.setdefault(PurePosixPath(day).parent.name, []).append(day)
    if channel is not None:
        wanted = channels.get(channel.removeprefix("#"))
        if wanted is None:
            raise ValueError(f"has no channel {channel!r}; it has: {', '.join(sorted(channels))[:400]}")
        channels = {channel: wanted}
    elif len(channels) > 1:
        listed = ", ".join(sorted(channels))[:400]
        source.notes.append(
            f"{len(channels)} channels in the order of time: {listed}; --channel NAME reads one of them"
        )
    said = [
        one
        for listed_days in channels.values()
        for day in listed_days
        for one in _parsed(files, day, source, lambda messages: said_in(messages, source)) or []
    ]
    return of_chat(with_names(said, {user: name for user, name in source.names.items() if user not in names}))


def _parsed(files: Files, name: str, source: Source, read: Callable[[object], T]) -> T | None:
    """Return what a file of the export says; one that cannot be read is noted, and the others are read."""
    whole, source.name = source.name, f"{source.name}/{name}"
    try:
        return read(parse(files[name]()))
    except OSError as error:
        source.problem(error.strerror)
    except TooLarge:
        raise
    except ValueError as error:
        source.problem(error)
    finally:
        source.name = whole
    return None


def _only_one(files: Files, source: Source, read: Callable[[str, bytes, Source], Transcript]) -> Transcript:
    """Return the transcript of the one file that is one; parts of an export of Matrix follow each other."""
    names = [name for name in files if PurePosixPath(name).suffix.lower() in _ENDINGS]
    names = [name for name in names if not _is_about(name)] or names
    if not names:
        raise ValueError("holds no transcript")
    chats = [name for name in names if PurePosixPath(name).name.lower() in ("export.json", "_chat.txt", "result.json")]
    if not chats:  # of programs for chats with models, beside a page with the same
        chats = [name for name in names if PurePosixPath(name).name.lower() == "conversations.json"]
    if chats and (others := sorted({*names} - {*chats})):
        source.notes.append(f"read {chats[0]}; not read: {', '.join(others)[:400]}")
    names = chats or names
    folders = {PurePosixPath(name).parent for name in names}
    if len(names) > 1 and len(folders) == 1 and all(_PART.fullmatch(PurePosixPath(name).name) for name in names):
        return read(names[0], _one_thread(files, names, source), source)
    if (
        len(names) > 1 and len({str(PurePosixPath(name).with_suffix("")) for name in names}) == 1
    ):  # one, in many formats
        names.sort(key=lambda name: _ENDINGS.index(PurePosixPath(name).suffix.lower()))
        return _first_of(files, names, source, read)
    if len(names) > 1:
        return _of_several(files, names, source, read)
    return read(names[0], files[names[0]](), source)


def _first_of(
    files: Files, names: Sequence[str], source: Source, read: Callable[[str, bytes, Source], Transcript]
) -> Transcript:
    """Return what is said in the first of the files that is a transcript."""
    failed: list[ValueError] = []
    for name in names:
        of_file = Source(source.name)
        try:
            found = read(name, files[name](), of_file)
        except TooLarge:
            raise
        except ValueError as error:
            failed.append(error)
            continue
        source.problems += of_file.problems
        others = ", ".join(one for one in names if one != name)
        source.notes += [*of_file.notes, f"read {name}; not read: {others[:400]}"]
        return found
    raise failed[0]


def _of_several(
    files: Files, names: Sequence[str], source: Source, read: Callable[[str, bytes, Source], Transcript]
) -> Transcript:
    """Return what is said in the one file in which something is, or in a chat's pages in HTML in the order of time."""
    found: dict[str, tuple[Source, Transcript]] = {}
    for name in names[:MOST_TRIED]:
        of_file = Source(f"{source.name}/{name}")
        try:
            told = read(PurePosixPath(name).name, files[name](), of_file)
        except TooLarge:
            raise
        except ValueError:
            continue
        if any(one.speaker != UNKNOWN_SPEAKER or one.at is not None for one in told.utterances):
            found[name] = (of_file, told)
    pages = {re.sub(r"\d{0,4}(?=\.\w+$)", "", name) for name in found}
    moments = [(told.said_at(one), one) for _, told in found.values() for one in told.utterances]
    if len(found) != 1 and not (
        found
        and len(pages) == 1
        and next(iter(pages)).lower().endswith((".html", ".htm"))
        and len(names) <= MOST_TRIED
        and all(at for at, _ in moments)
    ):
        listed = ", ".join(sorted(found or names))[:400]
        raise ValueError(f"holds {len(found or names)} transcripts; unpack it and name one: {listed}")
    for of_file, _ in found.values():
        source.problems += of_file.problems
        source.notes += of_file.notes
    if others := sorted({*names} - {*found}):
        source.notes.append(f"read {next(iter(found))}; not read: {', '.join(others)[:400]}")
    if len(found) == 1:
        return next(told for _, told in found.values())
    return of_chat((at.timestamp(), one) for at, one in moments if at is not None)


def _one_thread(files: Files, names: Iterable[str], source: Source) -> bytes:
    """Return the parts of a thread as one document; their messages are put in order by who reads it."""
    parts = [_parsed(files, name, source, lambda part: part if isinstance(part, dict) else {}) or {} for name in names]
    lists = [part["messages"] for part in parts if isinstance(part.get("messages"), list)]
    whole = {**next(iter(parts), {}), "messages": [one for messages in lists for one in messages]}
    return json.dumps(whole).encode()


def _is_about(name: str) -> bool:
    """Return whether a file tells of an export, not what was said."""
    about = (*USERS, "channels.json", "groups.json", "dms.json", "mpims.json", "integration_logs.json", "canvases.json")
    return PurePosixPath(name).name in (*about, "lists.json", "file_conversations.json", "huddle_transcripts.json")


def refuse_large(path: Path) -> None:
    """Raise :class:`TranscriptError` for a file that is too large to be read at once."""
    if path.stat().st_size > LARGEST:
        raise TranscriptError(f"{path}: more than {LARGEST // 2**20} MiB; split it")
