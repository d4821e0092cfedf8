"""Documents of word processors, as Teams, Otter, Google Meet and courts export them: their paragraphs as lines of text.

Word (.docx), OpenDocument (.odt), Rich Text, and PDF, by pypdf, of the extra ``knowledge``.
"""

from __future__ import annotations

import io
import logging
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Final
from xml.etree.ElementTree import Element

from context_builder.transcript.archive import refuse_long_list
from context_builder.transcript.formats.html_exports import bounded
from context_builder.transcript.formats.ttml import parse_xml

LARGEST: Final = 32 * 2**20
"""Bytes of a document's text, unpacked: some hundred hours of talk."""

_WORDS: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH: Final = f"{_WORDS}p"
_MARKS: Final = {f"{_WORDS}br": "\n", f"{_WORDS}cr": "\n", f"{_WORDS}tab": "\t"}
_BODY: Final = "word/document.xml"
_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


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


def text_of_word_document(raw: bytes) -> str:
    """Return the paragraphs of a Word document, an empty line between two. Raises :class:`ValueError`."""
    root = parse_xml(_packed(raw, _BODY).decode("utf-8-sig", "replace"))
    return "\n\n".join("".join(_said_in(one)) for one in root.iter(_PARAGRAPH))


def _packed(raw: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(name) as file:
            written = file.read(LARGEST + 1)
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a Word document: {type(error).__name__}") from None
    if len(written) > LARGEST:
        raise ValueError(f"a Word document that unpacks to more than {LARGEST / 2**20:g} MiB")
    return written


def _said_in(element: Element) -> Iterator[str]:
    """Yield what a paragraph says; one within it, as in a text box, stands alone."""
    for one in element:
        if one.tag == f"{_WORDS}t":
            yield one.text or ""
        elif one.tag in _MARKS:
            yield _MARKS[one.tag]
        elif one.tag != _PARAGRAPH:
            yield from _said_in(one)


_ADDRESS: Final = re.compile(r'\("https?://[^"\s()]{1,2000}"\)')
"""What ``striprtf`` puts behind the words of a link."""


def is_rich_text(raw: bytes) -> bool:
    return raw[:200].lstrip().startswith(b"{\\rtf")


def text_of_rich_text(raw: bytes) -> str:
    """Return the text of a Rich Text file. Raises :class:`ValueError`."""
    from striprtf.striprtf import rtf_to_text

    if len(raw) > LARGEST:
        raise ValueError(f"a Rich Text file of more than {LARGEST / 2**20:g} MiB")
    try:
        text = str(rtf_to_text(raw.decode("latin-1"), errors="replace"))  # type: ignore[no-untyped-call]
        return _ADDRESS.sub("", text)
    except (LookupError, IndexError, RecursionError) as error:
        raise ValueError(f"not Rich Text: {type(error).__name__}") from None


def is_open_document(raw: bytes) -> bool:
    """Return whether it is a text of LibreOffice or others (.odt), by what it says of itself first."""
    return raw.startswith(b"PK\x03\x04") and b"application/vnd.oasis.opendocument.text" in raw[:200]


def text_of_open_document(raw: bytes) -> str:
    """Return the paragraphs of an OpenDocument text. Raises :class:`ValueError`."""
    root = parse_xml(_packed(raw, "content.xml").decode("utf-8-sig", "replace"))
    paragraphs = [one for one in root.iter() if one.tag in (f"{_TEXT}p", f"{_TEXT}h")]
    return "\n\n".join(_open_paragraph(one) for one in paragraphs)


def _open_paragraph(element: Element) -> str:
    marks = {f"{_TEXT}line-break": "\n", f"{_TEXT}tab": "\t", f"{_TEXT}s": " "}
    inside = (marks.get(one.tag, "") + _open_paragraph(one) + (one.tail or "") for one in element)
    return (element.text or "") + "".join(inside)


_MOST_PAGES: Final = 2_000


def is_pdf(raw: bytes) -> bool:
    return raw.startswith(b"%PDF")


def text_of_pdf(raw: bytes) -> str:
    """Return the text of the pages. Raises :class:`ValueError` where there is none, or pypdf is missing."""
    if find_spec("pypdf") is None:
        raise ValueError("a PDF document, which the extra knowledge reads: pip install 'context-builder[knowledge]'")
    text = bounded(_pages, raw.decode("latin-1"))
    if not text.strip():
        raise ValueError("a PDF document without text: of pictures, or encrypted")
    return text


def _pages(raw: str) -> str:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what is odd in a file is not this program's to tell
    try:
        reader = PdfReader(io.BytesIO(raw.encode("latin-1")))
        if reader.is_encrypted:
            return ""
        return "\n".join(page.extract_text() for _, page in zip(range(_MOST_PAGES), reader.pages, strict=False))
    except Exception as error:  # noqa: BLE001 a parser of a hostile format: whatever stops it, the file is told
        raise ValueError(f"not a PDF document that can be read ({type(error).__name__})") from None


OFFICE_DOCUMENTS: Final[tuple[tuple[Callable[[bytes], bool], Callable[[bytes], str]], ...]] = (
    (is_word_document, text_of_word_document),
    (is_open_document, text_of_open_document),
    (is_rich_text, text_of_rich_text),
    (is_pdf, text_of_pdf),
)
"""Whether bytes are of a kind, and their text."""
