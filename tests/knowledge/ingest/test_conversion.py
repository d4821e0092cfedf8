"""HTML pages, notebooks and PDF files are read as what a person reads in them."""

from __future__ import annotations

import json
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from context_builder.knowledge.ingest.conversion import NotReadable, convert
from context_builder.knowledge.ingest.folder import Skipped, TextFile, files_in
from context_builder.knowledge.ingest.ingest import FolderIndex, IngestOptions, artifact_of, references

HTML = """<html><head><title>x</title><style>p { color: red }</style></head><body><nav>Menu</nav>
<h1>Labels</h1><p>Clips are   <code>labelled</code> by <a href="people.html">two people</a>.</p>
<ul><li>One</li><li>Two</li></ul><pre>def f():
    return 1</pre><script>alert(1)</script><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
</body></html>"""


def test_a_page_is_read_without_what_is_not_its_text() -> None:
    text = convert(".html", HTML.encode())
    assert "# Labels\n\nClips are `labelled` by [two people](people.html)." in text
    assert "- One\n- Two" in text
    assert "```\ndef f():\n    return 1\n```" in text
    assert "| a | b" in text
    assert not any(word in text for word in ("alert", "color", "Menu"))


def test_an_item_and_a_row_are_lines_though_there_are_paragraphs_in_them() -> None:
    items, row = "<li>\n<p>One</p></li><li><div>Two</div></li>", "<tr><td><p>a</p><td><p>b</p><ul><li>c</ul>"
    text = convert(".html", f"<ul>{items}</ul><table>{row}</table>".encode())
    assert "- One" in " ".join(text.split())
    assert "- Two" in text
    assert "| a | b - c" in " ".join(text.split())


def test_a_definition_stands_below_its_term() -> None:
    page = b"<dl><dt><code>load(path)</code></dt>\n<dd><p>Loads a file.</p></dd><dt>Other<dd>one<dd>two</dl><p>After"
    assert convert(".html", page) == "`load(path)`\n: Loads a file.\n\nOther\n: one\n: two\n\nAfter"


def test_what_leads_to_other_places_is_not_read() -> None:
    page = (
        b'<div class="toc"><div><a href="a.html">Contents</a></div>more</div><h1>Labels<a class="headerlink" href="#l">'
        b'\xc2\xb6</a></h1><p>Text.</p><div role="navigation">Next</div><p class="toc">Said.</p>'
    )
    assert convert(".html", page) == "# Labels\n\nText.\n\nSaid."


def test_a_notebook_is_its_texts_and_code() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Labels\n", "Text."]},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"text": "noise"}]},
    ]
    assert convert(".ipynb", json.dumps({"cells": cells}).encode()) == "# Labels\nText.\n\n```\nx = 1\n```"


@pytest.mark.parametrize(
    ("suffix", "data"),
    [(".ipynb", b"{}"), (".ipynb", b"["), (".pdf", b"%PDF-1.4 nonsense"), (".html", b"\xff\xfe<p>"), (".pdf", b"")],
)
def test_what_cannot_be_read_says_so(suffix: str, data: bytes) -> None:
    with pytest.raises(NotReadable):
        convert(suffix, data)


@given(st.binary(max_size=300), st.sampled_from([".html", ".ipynb", ".pdf"]))
def test_no_file_stops_the_reader(data: bytes, suffix: str) -> None:
    with suppress(NotReadable):
        assert isinstance(convert(suffix, data), str)


def test_a_folder_of_them_is_read_as_documents_that_link_to_each_other(tmp_path: Path) -> None:
    (tmp_path / "labels.html").write_text(HTML)
    (tmp_path / "people.html").write_text("<h1>People</h1><p>Ann and Ben.</p>")
    writer, buffer = PdfWriter(), BytesIO()
    writer.add_blank_page(72, 72)
    writer.write(buffer)
    (tmp_path / "scan.pdf").write_bytes(buffer.getvalue())
    found = list(files_in(tmp_path))
    assert found[2] == Skipped("scan.pdf", "empty")
    files = [one for one in found if isinstance(one, TextFile)]
    artifact = artifact_of(files[0], IngestOptions("kelp"))
    assert (artifact.kind, artifact.title) == ("document", "Labels")
    assert {one.path for one in references(files[0], FolderIndex(files))} == {"people.html"}
