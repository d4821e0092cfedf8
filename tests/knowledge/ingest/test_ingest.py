"""A folder's files become artifacts and edges; what is as it was stays, and what may not be read is left out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from context_builder.errors import KnowledgeError
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Link
from context_builder.knowledge.ingest.folder import Skipped, TextFile, files_in
from context_builder.knowledge.ingest.ingest import (
    FolderIndex,
    IngestOptions,
    IngestResult,
    Reference,
    artifact_of,
    ingest,
    ref_of,
    references,
)
from context_builder.knowledge.store import KnowledgeStore

KELP = IngestOptions("kelp")


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def index(paths: Iterable[str]) -> FolderIndex:
    return FolderIndex(TextFile(path, "") for path in sorted(paths))


def paths_in(folder: Path) -> list[str]:
    return [one.path for one in files_in(folder) if isinstance(one, TextFile)]


def counts(result: IngestResult) -> tuple[int, int, int]:
    return result.new, result.changed, result.unchanged


def test_what_gitignore_names_is_left_out_however_deep(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.log\n/build/\nsecret.md\n",
            "docs/.gitignore": "!kept.log\ndraft*\n",
            "a.md": "a", "b.log": "b", "build/c.md": "c", "docs/kept.log": "d", "docs/draft1.md": "e",
            "docs/build/f.md": "f", "deep/er/secret.md": "g", ".hidden/h.md": "h", ".env": "TOKEN=1",
        },
    )  # fmt: skip
    assert paths_in(tmp_path) == ["a.md", "docs/build/f.md", "docs/kept.log"]


def test_rules_above_the_folder_hold_up_to_the_repositorys_top(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.md\n", "repo/.git/HEAD": "ref", "repo/.gitignore": "*.log\n/docs/drafts/\n",
            "repo/docs/.gitignore": "!kept.log\n", "repo/docs/a.md": "a", "repo/docs/b.log": "b",
            "repo/docs/kept.log": "c", "repo/docs/drafts/d.md": "d",
        },
    )  # fmt: skip
    assert paths_in(tmp_path / "repo/docs") == ["a.md", "kept.log"]
    (tmp_path / "repo/.git/HEAD").unlink()
    (tmp_path / "repo/.git").rmdir()
    assert paths_in(tmp_path / "repo/docs") == ["a.md", "b.log", "drafts/d.md", "kept.log"]


@pytest.mark.parametrize("rule", ["/built/", "built", "*\n!*.py", "/built/*\nbuilt/"])
def test_a_folder_that_is_named_is_read_though_rules_above_ignore_it(tmp_path: Path, rule: str) -> None:
    inside = {"repo/built/a.md": "a", "repo/built/b.log": "b", "repo/built/deep/c.md": "c"}
    write(tmp_path, {"repo/.git/HEAD": "ref", "repo/.gitignore": f"{rule}\n*.log\n", **inside})
    assert paths_in(tmp_path / "repo") == []
    assert paths_in(tmp_path / "repo/built/deep") == ["c.md"]
    if "/*" not in rule:
        assert paths_in(tmp_path / "repo/built") == ["a.md", "deep/c.md"]


@pytest.mark.parametrize("line", ["!", "broken\\", "[b-a]", "**\\"])
def test_a_line_of_gitignore_that_is_no_rule_names_nothing(tmp_path: Path, line: str) -> None:
    write(tmp_path, {".gitignore": f"{line}\n*.log\n", "a.md": "a", "b.log": "b"})
    assert paths_in(tmp_path) == ["a.md"]


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    write(tmp_path, {"outside/secret.md": "secret", "in/a.md": "a"})
    (tmp_path / "in/link.md").symlink_to(tmp_path / "outside/secret.md")
    (tmp_path / "in/folder").symlink_to(tmp_path / "outside")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    assert paths_in(tmp_path / "in") == ["a.md"]


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    (tmp_path / "zero.txt").write_bytes(b"a\x00b")
    (tmp_path / "empty.md").write_text(" \n")
    (tmp_path / "long.txt").write_text("a" * 2_000_001)
    assert list(files_in(tmp_path)) == [
        Skipped("empty.md", "empty"),
        Skipped("long.txt", "longer than 2,000,000 characters"),
        Skipped("picture.png", "not UTF-8 text"),
        Skipped("zero.txt", "not text"),
    ]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf# Labels\r\n\r\nClips.")
    (file,) = files_in(tmp_path)
    assert isinstance(file, TextFile)
    assert artifact_of(file, KELP).title == "Labels"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Labels\n\nClips.\n\n# Export\n\nFiles.", "Labels"),
        ("A note.\n\n# Labels\n\nClips.\n\n## Export\n\nFiles.", "Labels"),
        ("What labels are for.\n\n## Export\n\nFiles.\n\n## Import\n\nMore.", "docs/labels.md"),
        ("What labels are for.", "docs/labels.md"),
        ("[![build](a.svg)](https://ci.example) ![b](b.svg)\n\n# Labels\n\nClips.\n\n# Export\n\nFiles.", "Labels"),
        ("<!-- (c) a lab -->\n\n# Labels\n\nClips.\n\n# Export\n\nFiles.", "Labels"),
    ],
)
def test_the_heading_of_one_section_of_several_is_no_title(text: str, title: str) -> None:
    assert artifact_of(TextFile("docs/labels.md", text), KELP).title == title


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert list(files_in(tmp_path)) == []


def test_markdown_links_to_files_of_the_folder() -> None:
    text = (
        "[a](other.md#part) [b](../top.md) [c](/docs/deep/d%20e.md) [out](../../../etc/passwd) [web](https://x.test/a.md)\n"
        "\n`[code](code.md)` [self](page.md) [ref][r]\n\n[r]: other.md\n"
    )
    paths = {"docs/page.md", "docs/other.md", "top.md", "docs/deep/d e.md", "docs/code.md", "etc/passwd"}
    found = references(TextFile("docs/page.md", text), index(paths))
    assert {one.path for one in found} == {"docs/other.md", "top.md", "docs/deep/d e.md"}
    assert {one.type for one in found} == {"links_to"}


@pytest.mark.parametrize(
    ("path", "text", "linked"),
    [
        ("docs/a.md", "See {doc}`howto/retry` and {doc}`that <locks>`.", {"docs/howto/retry.md", "docs/locks.rst"}),
        ("docs/a.md", "```{toctree}\n:maxdepth: 2\n\nhowto/retry\nLocks <locks>\n```",
         {"docs/howto/retry.md", "docs/locks.rst"}),
        ("docs/a.md", "[[Retry]], [[locks#how|so]]", {"docs/howto/retry.md", "docs/locks.rst"}),
        ("docs/a.md", "[a](howto/retry/) [b](howto) [c](#here)", {"docs/howto/retry.md", "docs/howto/index.md"}),
        ("docs/a.md", "`{doc}` and `[[Retry]]` are code", set()),
        ("docs/a.md", "{ref}`Deep Lock`", {"docs/locks.rst"}),
        ("docs/a.rst", ":doc:`/docs/locks`, `retries <howto/retry.html>`_ and :ref:`so <deep lock>`",
         {"docs/locks.rst", "docs/howto/retry.md"}),
        ("docs/a.rst", ".. toctree::\n   :glob:\n\n   howto/retry\n\n.. literalinclude:: till.py\n\nText.",
         {"docs/howto/retry.md", "docs/till.py"}),
        ("docs/a.adoc", "xref:c.adoc#part[C] <<c.adoc#part,C>> include::till.py[]", {"docs/c.adoc", "docs/till.py"}),
    ],
)  # fmt: skip
def test_pages_link_to_pages_as_their_tools_do(path: str, text: str, linked: set[str]) -> None:
    others = {
        "docs/howto/retry.md": "# Retry", "docs/howto/index.md": "", "docs/c.adoc": "", "docs/till.py": "",
        "docs/locks.rst": ".. _Deep lock:\n\nLocks\n=====\n",
    }  # fmt: skip
    file = TextFile(path, text)
    folder = FolderIndex([file, *(TextFile(*other) for other in others.items())])
    assert {one.path for one in references(file, folder)} == linked


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        ("import shop.cart", "src/shop/cart.py"),
        ("from shop import cart", "src/shop/cart.py"),
        ("from shop.cart import total", "src/shop/cart.py"),
        ("from . import cart", "src/shop/cart.py"),
        ("from .cart import total", "src/shop/cart.py"),
        ("from .. import shop", "src/shop/__init__.py"),
        ("import os", None),
        ("from ....... import cart", None),
        ("def broken(:", None),
    ],
)
def test_python_imports_files_of_the_folder(line: str, imported: str | None) -> None:
    paths = {"src/shop/__init__.py", "src/shop/cart.py", "src/shop/till.py"}
    found = references(TextFile("src/shop/till.py", line), index(paths))
    assert {one.path for one in found if one.path != "src/shop/__init__.py" or imported == one.path} == (
        {imported} if imported else set()
    )


def test_scripts_import_files_of_the_folder() -> None:
    text = "import a from './a';\nconst b = require(\"../b.js\");\nexport * from './dir'\nimport x from 'react'\n"
    paths = {"web/a.ts", "b.js", "web/dir/index.tsx", "web/react.js"}
    assert references(TextFile("web/page.ts", text), index(paths)) == {
        Reference("web/a.ts", "imports"), Reference("b.js", "imports"), Reference("web/dir/index.tsx", "imports")
    }  # fmt: skip


def test_any_path_has_a_ref_of_its_own() -> None:
    assert ref_of("kelp", "docs/a.md") == "artifact:kelp/docs/a.md"
    odd = ["a b.md", "a-b.md", "ä.md", "ö.md", "a\nb.md", "x" * 600, "x" * 601, "\udcff.md"]
    assert len({ref_of("kelp", path) for path in odd}) == len(odd)
    assert all(len(ref_of("kelp", path)) <= 512 for path in odd)


@pytest.mark.engines
async def test_a_folder_is_stored_and_only_what_changed_is_stored_again(
    knowledge: KnowledgeStore, tmp_path: Path
) -> None:
    write(
        tmp_path, {"a.md": "# Labels\n\nSee [b](b.md).", "b.md": "Clips.", "run.py": "import tool", "tool.py": "x = 1"}
    )
    result = await ingest(knowledge, "lab", tmp_path, KELP)
    assert (counts(result), result.edges) == ((4, 0, 0), 2)
    held = await knowledge.get("lab", ["artifact:kelp/a.md", "artifact:kelp/run.py"])
    kinds = {one.title: one.kind for one in held.values()}
    assert kinds == {"Labels": ArtifactKind.DOCUMENT, "run.py": ArtifactKind.CODE}
    assert counts(await ingest(knowledge, "lab", tmp_path, KELP)) == (0, 0, 4)
    write(tmp_path, {"a.md": "# Labels\n\nSee [tool](tool.py)."})
    assert counts(await ingest(knowledge, "lab", tmp_path, KELP)) == (0, 1, 3)
    around = await knowledge.neighbourhood("lab", ["artifact:kelp/a.md"], depth=1)
    assert around.edges == (Link("artifact:kelp/a.md", "artifact:kelp/tool.py", "links_to"),)


@pytest.mark.engines
async def test_a_single_file_is_the_same_artifact_as_in_its_folder_and_keeps_its_edges(
    knowledge: KnowledgeStore, tmp_path: Path
) -> None:
    write(tmp_path, {"a.md": "# Labels\n\nSee [b](b.md).", "b.md": "Clips."})
    await ingest(knowledge, "lab", tmp_path, KELP)
    assert counts(await ingest(knowledge, "lab", tmp_path / "a.md", KELP)) == (0, 0, 1)
    write(tmp_path, {"a.md": "# Labels, again\n\nSee [b](b.md)."})
    result = await ingest(knowledge, "lab", tmp_path / "a.md", KELP)
    assert (counts(result), result.edges) == ((0, 1, 0), 1)
    around = await knowledge.neighbourhood("lab", ["artifact:kelp/a.md"], depth=1)
    assert around.edges == (Link("artifact:kelp/a.md", "artifact:kelp/b.md", "links_to"),)
    with pytest.raises(KnowledgeError, match="--prune"):
        await ingest(knowledge, "lab", tmp_path / "a.md", replace(KELP, prune=True))


@pytest.mark.engines
async def test_only_what_changed_is_sent(
    knowledge: KnowledgeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a.md": "See [b](b.md).", "b.md": "Clips.", "c.md": "Whistles."})
    await ingest(knowledge, "lab", tmp_path, KELP)
    sent: list[str] = []
    genuine = KnowledgeStore._call

    async def call(self: KnowledgeStore, function: str, tenant_id: str, **arguments: Any) -> list[Any]:
        sent.append(function.removeprefix("context_knowledge_"))
        return await genuine(self, function, tenant_id, **arguments)

    monkeypatch.setattr(KnowledgeStore, "_call", call)
    await ingest(knowledge, "lab", tmp_path, KELP)
    assert sent == ["outlines"]
    write(tmp_path, {"b.md": "Clips, louder."})
    await ingest(knowledge, "lab", tmp_path, KELP)
    assert sent[1:] == ["outlines", "put"]
    (tmp_path / "b.md").unlink()
    await ingest(knowledge, "lab", tmp_path, KELP)
    assert sent[3:] == ["outlines", "unlink"]


@pytest.mark.engines
@pytest.mark.parametrize("field", sorted(set(Artifact.model_fields) - {"content"}))
async def test_whatever_field_differs_an_outline_tells(knowledge: KnowledgeStore, field: str) -> None:
    artifact = Artifact(kind=ArtifactKind.DOCUMENT, title="Labels", content="Whistles, 字.", tags=("b", "a"))
    await knowledge.put("lab", "artifact:a", artifact)
    outline = (await knowledge.outlines("lab", ["artifact:a", "artifact:none"], ["links_to"]))["artifact:a"]
    assert outline.describes(artifact)
    others = {"kind": "code", "status": "stale", "sensitivity": "public", "tags": ["a"], "supersedes": "artifact:b"}
    other = Artifact.model_validate(artifact.model_dump() | {field: others.get(field, "other")})
    assert not outline.describes(other)
    assert (await knowledge.put("lab", "artifact:a", other)).changed


@pytest.mark.engines
async def test_pruning_erases_what_was_ingested_and_is_gone(knowledge: KnowledgeStore, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "A.", "b c.md": "B."})
    await ingest(knowledge, "lab", tmp_path, KELP)
    await ingest(knowledge, "lab", tmp_path, IngestOptions("other"))
    await ingest(knowledge, "club", tmp_path, KELP)
    (tmp_path / "b c.md").unlink()
    assert (await ingest(knowledge, "lab", tmp_path, KELP)).erased == []
    gone = ref_of("kelp", "b c.md")
    assert (await ingest(knowledge, "lab", tmp_path, IngestOptions("kelp", prune=True))).erased == [gone]
    assert await knowledge.get("lab", [gone]) == {}
    assert len(await knowledge.sources("lab", "other")) == len(await knowledge.sources("club", "kelp")) == 2


async def test_pruning_keeps_what_cannot_be_read_now(
    knowledge: KnowledgeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a.md": "A", "gone.md": "G", "locked.md": "L", "closed/b.md": "B", "listed/c.md": "C"})
    await ingest(knowledge, "lab", tmp_path, KELP)
    (tmp_path / "gone.md").unlink()
    unreadable = {tmp_path / "locked.md", tmp_path / "closed", tmp_path / "listed/c.md"}

    def refusing(name: str) -> None:
        """Refuse as the system refuses all but root."""
        genuine = getattr(Path, name)

        def call(path: Path) -> object:
            if path in unreadable and not (name == "is_dir" and path.name != "c.md"):
                raise PermissionError(13, "Permission denied", str(path))
            return genuine(path)

        monkeypatch.setattr(Path, name, call)

    for name in ("iterdir", "read_bytes", "is_dir"):
        refusing(name)
    result = await ingest(knowledge, "lab", tmp_path, IngestOptions("kelp", prune=True))
    assert result.erased == [ref_of("kelp", "gone.md")]
    assert {one.path for one in result.skipped if one.unread} == {"locked.md", "closed", "listed/c.md"}


async def test_a_path_that_is_no_utf_8_holds_up_no_other(knowledge: KnowledgeStore, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"b\xff.txt")).write_text("Clips.")
    (tmp_path / "a\nb.txt").write_text("Whistles.")
    result = await ingest(knowledge, "lab", tmp_path, KELP)
    assert (counts(result), result.skipped) == ((1, 0, 0), [Skipped("b?.txt", "its path is not UTF-8")])
