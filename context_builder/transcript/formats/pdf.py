"""The text of a PDF document, as Otter, Rev and courts export transcripts: by pypdf, of the extra ``knowledge``."""

from __future__ import annotations

import io
import logging
from importlib.util import find_spec
from typing import Final

from context_builder.transcript.formats.html_exports import bounded

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
