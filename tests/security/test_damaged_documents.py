"""Damaged and hostile documents are refused with a reason, or read in bounded time."""

from __future__ import annotations

import io
import zipfile

import pytest

from context_builder.knowledge.ingest.conversion import convert
from context_builder.transcript.formats.word_document import text_of


def test_a_word_document_with_damaged_compression_is_refused() -> None:
    name, written = "word/document.xml", io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, "<a>" + "hello " * 500 + "</a>")
    raw = bytearray(written.getvalue())
    raw[30 + len(name) : 38 + len(name)] = b"\xff" * 8
    with pytest.raises(ValueError, match="not a Word document"):
        text_of(bytes(raw))


@pytest.mark.timeout(20)
def test_many_hidden_elements_that_are_not_closed_are_read_in_time() -> None:
    assert convert(".html", b"<svg>" * 100_000 + b"</p>" * 100_000) == ""
