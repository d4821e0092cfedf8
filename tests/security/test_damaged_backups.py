"""A backup file that somebody made to be hard to read is refused, or read in time that grows with its size."""

from __future__ import annotations

import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest

from context_builder.backup import container
from context_builder.backup.container import BackupReader, BackupWriter
from context_builder.errors import BackupError


def written(path: Path, content: bytes) -> Path:
    """A backup with one part."""
    with BackupWriter(path) as writer, writer.member("sessions.jsonl") as stream:
        stream.write(content)
    return path


@pytest.mark.parametrize("name", [1, None, ["1"], {}, True])
def test_a_part_whose_name_is_no_text_is_refused(tmp_path: Path, name: Any) -> None:
    path = tmp_path / "forged"
    manifest = {"kind": container.KIND, "format": container.FORMAT, "members": [name]}
    with zipfile.ZipFile(path, "w") as forged:
        forged.writestr(str(name), b"{}\n")
        forged.writestr(container.MANIFEST, orjson.dumps(manifest))
    with pytest.raises(BackupError, match="its parts are not those of its manifest"), BackupReader(path) as reader:
        reader.verify()


class CountedBytes(bytes):
    """Counts what is copied to put it behind other bytes."""

    copied = 0

    def __radd__(self, before: bytes) -> bytes:
        CountedBytes.copied += len(before)
        return bytes(before).__add__(self)


def test_a_long_line_is_not_copied_again_with_each_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"a": "x" * 50_000}, {}, {"b": "y" * 999}]
    content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    parts = BackupReader.parts

    def counted(reader: BackupReader, name: str) -> Generator[bytes, None, None]:
        yield from map(CountedBytes, parts(reader, name))

    monkeypatch.setattr(container, "PART", 100)
    monkeypatch.setattr(BackupReader, "parts", counted)
    with BackupReader(written(tmp_path / "all.backup", content)) as reader:
        assert [*reader.lines("sessions.jsonl")] == lines
    assert CountedBytes.copied < 2 * len(content)


@pytest.mark.parametrize("most", [999, 1_001])
def test_a_line_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(container, "PART", 100)
    monkeypatch.setattr(container, "LINE_MOST", most)
    path = written(tmp_path / "all.backup", b'{"a":"' + b"x" * 5_000 + b'"}\n')
    with BackupReader(path) as reader, pytest.raises(BackupError, match="has a line of more than"):
        [*reader.lines("sessions.jsonl")]
