"""Documents of word processors, as Teams, Otter and Google Meet export them: their paragraphs as lines of text."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from context_builder.transcript.archive import refuse_long_list
from context_builder.transcript.formats.ttml import parse_xml

LARGEST: Final = 32 * 2**20
"""Bytes of a document's text, unpacked: some hundred hours of talk."""

_WORDS: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH: Final = f"{_WORDS}p"
_MARKS: Final = {f"{_WORDS}br": "\n", f"{_WORDS}cr": "\n", f"{_WORDS}tab": "\t"}
_BODY: Final = "word/document.xml"


def is_word_document(raw: bytes) -> bool:
    """Return whether these are the bytes of one. Raises :class:`ValueError` for an archive of too many files."""
    if not raw.startswith(b"PK\x03\x04"):
        return False
    refuse_long_list(io.BytesIO(raw))
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return _BODY in archive.namelist()
    except zipfile.BadZipFile:
        return False


def text_of(raw: bytes) -> str:
    """Return the paragraphs of a Word document, an empty line between two. Raises :class:`ValueError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(_BODY) as file:
            written = file.read(LARGEST + 1)
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a Word document: {type(error).__name__}") from None
    if len(written) > LARGEST:
        raise ValueError(f"a Word document that unpacks to more than {LARGEST / 2**20:g} MiB")
    root = parse_xml(written.decode("utf-8-sig", "replace"))
    return "\n\n".join("".join(_said_in(one)) for one in root.iter(_PARAGRAPH))


def _said_in(element: Element) -> Iterator[str]:
    """Yield what a paragraph says; one within it, as in a text box, stands alone."""
    for one in element:
        if one.tag == f"{_WORDS}t":
            yield one.text or ""
        elif one.tag in _MARKS:
            yield _MARKS[one.tag]
        elif one.tag != _PARAGRAPH:
            yield from _said_in(one)


def is_rich_text(raw: bytes) -> bool:
    return raw[:200].lstrip().startswith(b"{\\rtf")


def text_of_rich_text(raw: bytes) -> str:
    """Return the text of a Rich Text file. Raises :class:`ValueError`."""
    from striprtf.striprtf import rtf_to_text

    if len(raw) > LARGEST:
        raise ValueError(f"a Rich Text file of more than {LARGEST / 2**20:g} MiB")
    try:
        return str(rtf_to_text(raw.decode("latin-1"), errors="replace"))  # type: ignore[no-untyped-call]
    except (LookupError, IndexError, RecursionError) as error:
        raise ValueError(f"not Rich Text: {type(error).__name__}") from None
