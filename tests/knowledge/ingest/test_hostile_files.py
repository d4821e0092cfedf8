"""Files of a folder that were written to be slow to read are read in time, or only for their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_builder.knowledge.ingest.folder import TextFile, files_in
from context_builder.knowledge.ingest.ingest import FolderIndex, references
from tests.growth import is_linear


@pytest.mark.parametrize("mark", ["[", "![", "[a](", "*a ", "_a ", "`a", "<", "&", "[x]: ", "(", "> ", "- "])
def test_links_of_markdown_are_found_in_time_in_proportion_to_its_length(mark: str) -> None:
    def read(text: str) -> None:
        assert references(TextFile("a.md", text), FolderIndex(())) == set()

    assert is_linear(read, mark, most=100_000)


def test_links_beside_many_marks_are_found() -> None:
    files = TextFile("a.md", "[" * 1_000 + "\n\nSee [b](b.md).\n"), TextFile("b.md", "")
    assert {one.path for one in references(files[0], FolderIndex(files))} == {"b.md"}


@pytest.mark.parametrize(
    "rule", ["*a" * 30, "*a" * 2_000, "*?" * 40, "*[!b]" * 40, "**a" * 40, "**/" * 60 + "x", "*/" * 60 + "x"]
)
@pytest.mark.timeout(20)
def test_no_rule_of_gitignore_takes_long(tmp_path: Path, rule: str) -> None:
    (tmp_path / ".gitignore").write_text(f"{rule}\n")
    folder = tmp_path.joinpath(*("a" * 100 for _ in range(20)))
    folder.mkdir(parents=True)
    (folder / ("a" * 200 + "b")).write_text("hello")
    (tmp_path / "b.md").write_text("hello")
    assert "b.md" in {one.path for one in files_in(tmp_path)}
