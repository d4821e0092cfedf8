"""A backup file: a ZIP archive whose last member, the manifest, names the others.

Members are written and read as streams. A ZIP archive is known by its end, so a truncated file is refused at once;
the CRC-32 that the archive has of each member tells damage, not forgery.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import IO, Any, Final, Self
from uuid import uuid4

import orjson

from context_builder import __version__
from context_builder.errors import BackupError

FORMAT: Final = 1
KIND: Final = "context_builder backup"
MANIFEST: Final = "manifest.json"
PART: Final = 2**20
"""Bytes that are read at once."""

MANIFEST_MOST: Final = 64 * 2**20
LINE_MOST: Final = 256 * 2**20
"""Most bytes of a line; Redis takes values of twice as many at most."""

_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


class BackupWriter:
    """Writes a file that is not there, private to its owner; it appears under its name once it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
        self._members: list[str] = []
        self.notes: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if self._path.exists():
            raise BackupError(f"{self._path}: already exists; choose another name")
        try:
            number = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise _unwritable(self._path, error) from None
        self._file = BufferedWriter(_CheckedFile(number, self._path))
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=3)
        return self

    @contextmanager
    def member(self, name: str) -> Iterator[IO[bytes]]:
        """Open a member to write it; one at a time."""
        with self._zip.open(name, "w", force_zip64=True) as stream:
            yield stream
        self._members.append(name)

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                header = {"kind": KIND, "format": FORMAT, "version": __version__, "members": self._members}
                self._zip.writestr(MANIFEST, orjson.dumps({**header, **self.notes}))
                self._zip.close()
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._partial.rename(self._path)
        except OSError as error:
            raise _unwritable(self._path, error) from None
        finally:
            self._zip.fp = None  # or it would be ended when it is collected
            with suppress(OSError, ValueError, BackupError):
                self._file.close()
            self._partial.unlink(missing_ok=True)


class _CheckedFile(FileIO):
    """A file that reports a full disk as an error of ours."""

    def __init__(self, number: int, path: Path) -> None:
        super().__init__(number, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise _unwritable(self._path, error) from None


def _unwritable(path: Path, error: OSError) -> BackupError:
    return BackupError(f"{path}: cannot be written: {error.strerror}")


class BackupReader:
    """Reads a backup file.

    Raises :class:`~context_builder.errors.BackupError`, which does not name the file, for whatever is none, or is
    damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        try:
            self._zip = zipfile.ZipFile(self._path)
        except OSError as error:
            raise BackupError(error.strerror or "cannot be read") from None
        except _BROKEN:
            raise BackupError("is not a backup, or an incomplete one") from None
        try:
            self.manifest = self._read_manifest()
        except BaseException:
            self._zip.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def verify(self) -> None:
        """Read all of it, which compares it with its checksums."""
        for name in self.manifest["members"]:
            for _ in self.parts(name):
                pass

    def parts(self, name: str) -> Generator[bytes, None, None]:
        """Yield the bytes of a member."""
        try:
            with self._zip.open(name) as stream:
                while part := stream.read(PART):
                    yield part
        except (*_BROKEN, OSError):
            raise BackupError(f"is damaged: {name} cannot be read") from None

    def lines(self, name: str) -> Generator[dict[str, Any], None, None]:
        """Yield the JSON objects of a member, one a line."""
        begun: list[bytes] = []
        with closing(self.parts(name)) as parts:
            for part in parts:
                end, *others = part.split(b"\n")
                begun.append(end)
                for other in others:
                    yield self._decoded(name, b"".join(begun))
                    begun = [other]
                if sum(map(len, begun)) > LINE_MOST:
                    raise BackupError(f"is damaged: {name} has a line of more than {LINE_MOST} bytes")
        if any(begun):
            raise BackupError(f"is damaged: {name} ends in the middle of a line")

    def _decoded(self, name: str, line: bytes) -> dict[str, Any]:
        try:
            value = orjson.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise BackupError(f"is damaged: {name} has a line that is no JSON object")
        return value

    def _read_manifest(self) -> dict[str, Any]:
        names = [info.filename for info in self._zip.infolist()]
        if MANIFEST not in names or self._zip.getinfo(MANIFEST).file_size > MANIFEST_MOST:
            raise BackupError("is not a backup of context_builder")
        manifest = self._decoded(MANIFEST, b"".join(self.parts(MANIFEST)))
        if manifest.get("kind") != KIND:
            raise BackupError("is not a backup of context_builder")
        if manifest.get("format") != FORMAT:
            raise BackupError(
                f"has format {manifest.get('format')!r}; this version ({__version__}) reads format {FORMAT}: "
                "use the version that wrote it, or a later one"
            )
        members = manifest.get("members")
        if (
            not isinstance(members, list)
            or not all(isinstance(one, str) for one in members)
            or sorted([*members, MANIFEST]) != sorted(names)
        ):
            raise BackupError("is damaged: its parts are not those of its manifest")
        return manifest
