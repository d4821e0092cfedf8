"""Damaged and hostile documents are refused with a reason, or read in bounded time."""

from __future__ import annotations

import io
import zipfile
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest

from context_builder.analysis.processes import BoundedProcess, TookTooLong
from context_builder.errors import TranscriptError
from context_builder.knowledge.ingest.conversion import Converter, NotReadable, convert
from context_builder.transcript import archive
from context_builder.transcript.formats import html_exports, office_documents, ttml
from context_builder.transcript.formats.office_documents import text_of_word_document
from context_builder.transcript.source import Source
from context_builder.transcript.transcript import read_transcript


def test_a_word_document_with_damaged_compression_is_refused() -> None:
    name, written = "word/document.xml", io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, "<a>" + "hello " * 500 + "</a>")
    raw = bytearray(written.getvalue())
    raw[30 + len(name) : 38 + len(name)] = b"\xff" * 8
    with pytest.raises(ValueError, match="not a Word document"):
        text_of_word_document(bytes(raw))


@pytest.mark.timeout(20)
def test_many_hidden_elements_that_are_not_closed_are_read_in_time() -> None:
    assert convert(".html", b"<svg>" * 100_000 + b"</p>" * 100_000) == ""


def zipped(path: Path, name: str, data: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, data)
    return path


def test_a_word_document_that_unpacks_to_too_much_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office_documents, "LARGEST", 2**19)
    path = zipped(tmp_path / "minutes.docx", "word/document.xml", b"<a>" + b" " * 2**20)
    with pytest.raises(TranscriptError, match=r"minutes\.docx: .*unpacks to more than 0\.5 MiB"):
        read_transcript(path)


def test_a_file_of_an_export_that_is_packed_absurdly_small_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(tmp_path / "export.zip", "talk.json", b" " * 2**20)
    monkeypatch.setattr(archive, "LARGEST_PACKED", 2**19)
    with pytest.raises(TranscriptError, match=r"export\.zip: its 'talk\.json' unpacks to more than 0\.5 MiB"):
        read_transcript(path)
    monkeypatch.setattr(archive, "LARGEST_PACKED", 2**20)
    monkeypatch.setattr(archive, "_SMALL", 1_000)
    with pytest.raises(TranscriptError, match=r"export\.zip: its 'talk\.json' is packed more than 200 times smaller"):
        read_transcript(path)


WORDS = b"xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'"


def document(body: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"<a " + WORDS + b">" + body + b"</a>")
    return written.getvalue()


@pytest.mark.timeout(20)
def test_elements_without_end_within_each_other_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        text_of_word_document(document(b"<w:p>" * 200_000 + b"</w:p>" * 200_000))
    box = b"<w:p><w:r><w:t>Out</w:t></w:r><w:pict><w:p><w:r><w:t>In</w:t></w:r></w:p></w:pict></w:p>"
    assert text_of_word_document(document(box)) == "Out\n\nIn"


def test_more_elements_or_files_than_anybody_needs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ttml, "MOST_ELEMENTS", 100)
    with pytest.raises(ValueError, match="more than 100 elements"):
        text_of_word_document(document(b"<w:p/>" * 200))
    monkeypatch.setattr(archive, "MOST_LISTED", 50)
    listed = zipped(tmp_path / "export.zip", "PK\x05\x06talk.json", b"[]")
    with pytest.raises(TranscriptError, match=r"export\.zip: has a list of files of more than"):
        read_transcript(listed)
    (minutes := tmp_path / "minutes.docx").write_bytes(document(b""))
    with pytest.raises(TranscriptError, match=r"minutes\.docx: has a list of files of more than"):
        read_transcript(minutes)


@pytest.mark.timeout(60)
def test_a_page_that_takes_the_square_of_its_length_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python's parser takes that long; later versions read it at once."""
    with closing(Converter(seconds=0.3)) as converter, suppress(NotReadable):
        converter.convert(".html", b"<a " * 100_000)

    def call(*_: object) -> None:
        raise TookTooLong

    monkeypatch.setattr(BoundedProcess, "call", call)
    with pytest.raises(ValueError, match="takes more than 30 s to read"):
        html_exports.read_html(Source("messages.html", "<a " * 100_000))
    html_exports.text_of_page("<a " * 100_000)  # in one pass
    assert not html_exports.is_chat_page("<p class=" * 100_000)


@pytest.mark.timeout(20)
def test_comments_that_do_not_end_are_left_out_at_once(tmp_path: Path) -> None:
    (path := tmp_path / "film.smi").write_text("<SAMI>" + "<!--" * 100_000)
    with pytest.raises(TranscriptError):
        read_transcript(path)


def page(operators: bytes) -> bytes:
    """A PDF file of one page that is drawn so."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>",
        b"<</Filter/FlateDecode/Length %d>>\nstream\n%b\nendstream" % (len(operators), operators),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % (number, one) for number, one in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF"


@pytest.mark.timeout(60)
def test_a_page_that_would_be_read_for_hours_is_given_up() -> None:
    converter = Converter(seconds=0.5)
    try:
        assert converter.convert(".pdf", page(zlib.compress(b"BT /F 1 Tf (hello) Tj ET"))) == "hello"
        with pytest.raises(NotReadable, match=r"takes more than 0\.5 s"):
            converter.convert(".pdf", page(zlib.compress(b"BT /F 1 Tf " + b"(hello) Tj " * 1_000_000 + b"ET")))
    finally:
        converter.close()


@pytest.mark.parametrize("text", ["- " * 20_000, "[" * 20_000, '{"a":' * 20_000], ids=["lists", "brackets", "braces"])
def test_yaml_that_is_nested_too_deeply_is_refused_at_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.yaml").write_text(text)
    with pytest.raises(TranscriptError, match=r"nested too deeply|not YAML"):
        read_transcript(tmp_path / "deep.yaml")


@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
@pytest.mark.parametrize("text", ["Ann: hi{}there", "**Ann**{}: hi", "Ann (a){}(b): hi", "{}", "Ann: hi\n{}\nBob: ho"])
@pytest.mark.parametrize("blank", [" ", "\n"])
@pytest.mark.timeout(20)
def test_blanks_without_end_are_read_at_once(tmp_path: Path, name: str, text: str, blank: str) -> None:
    (tmp_path / name).write_text(text.format(blank * 100_000))
    with suppress(TranscriptError):
        read_transcript(tmp_path / name)
