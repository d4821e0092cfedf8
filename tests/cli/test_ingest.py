"""``ingest`` stores a folder's files, and says what it did."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.store import KnowledgeStore

pytestmark = pytest.mark.engines


@pytest.fixture
def folder(tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.md").write_text("# Labels\n\nSee [b](b.md).")
    (folder / "b.md").write_text("Clips.")
    (folder / "evil\x1b[2Jname.bin").write_bytes(b"\xff")
    return folder


def ingest(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["ingest", *arguments])


def test_what_was_done_is_told(folder: Path) -> None:
    told = ingest(str(folder), "--project", "kelp")
    assert told.exit_code == 0
    assert "2 files: 2 new, 0 changed, 0 as before; 1 edge between them." in told.stdout
    assert "not UTF-8 text" in told.stderr
    assert all(line.strip() for line in told.stderr.splitlines())
    assert "\x1b[2J" not in told.output
    assert "0 new, 0 changed, 2 as before" in ingest(str(folder), "--project", "kelp").stdout


def test_a_folder_with_nothing_to_read_is_told_so(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / ".hidden.md").write_text("Not this.")
    told = ingest(str(empty), "--project", "kelp")
    assert told.exit_code == 0
    assert told.stdout.splitlines()[1].startswith("It has no file that is read: Markdown, other text or source code")


def test_one_file_is_told_as_one(folder: Path) -> None:
    (folder / "b.md").unlink()
    assert "1 file: 1 new" in ingest(str(folder), "--project", "kelp").stdout


def test_a_single_file_is_stored_whatever_its_name_is(folder: Path) -> None:
    (folder / ".notes.md").write_text("# Notes")
    (folder / ".gitignore").write_text("*.md")
    assert "1 file: 1 new" in ingest(str(folder / "a.md"), "--project", "kelp").stdout
    assert "1 file: 1 new" in ingest(str(folder / ".notes.md"), "--project", "kelp").stdout


def test_pruning_needs_a_folder(folder: Path) -> None:
    told = ingest(str(folder / "a.md"), "--project", "kelp", "--prune")
    assert told.exit_code == 1
    assert told.stderr.startswith("context-builder: --prune needs the project's folder")


def test_a_folder_whose_rules_cannot_be_read_is_told_in_a_line(folder: Path) -> None:
    (folder / ".gitignore").write_text("*.md\n" * 100_000)
    told = ingest(str(folder), "--project", "kelp")
    assert told.exit_code == 1
    assert "cannot be read: its .gitignore is larger" in told.stderr


def test_files_belong_to_no_module_but_the_one_that_is_named(folder: Path, migrated_url: str) -> None:
    async def modules() -> set[str]:
        database = PostgresDatabase(migrated_url)
        store = KnowledgeStore(database)
        held = await store.get("default", list(await store.sources("default", "kelp")))
        await database.close()
        return {one.module_id for one in held.values()}

    ingest(str(folder), "--project", "kelp")
    assert asyncio.run(modules()) == {""}
    ingest(str(folder), "--project", "kelp", "--module", "acoustics")
    assert asyncio.run(modules()) == {"acoustics"}


def test_programs_read_json(folder: Path) -> None:
    told = json.loads(ingest(str(folder), "--project", "kelp", "--prune", "--json").stdout)
    assert {name: told[name] for name in ("new", "changed", "unchanged", "edges", "erased")} == {
        "new": 2, "changed": 0, "unchanged": 0, "edges": 1, "erased": []
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--project", "kelp", "--status", "done"], "done"),
        (["--project", "kelp", "--sensitivity", "secret"], "secret"),
        (["--project", "x" * 201], "project"),
        ([], "--project"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, arguments: list[str], named: str) -> None:
    told = ingest(str(folder), *arguments)
    assert told.exit_code == 2
    assert named in "".join(told.stderr.replace("│", "").split())
    assert "Traceback" not in told.output


def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    told = ingest(str(folder / "nowhere"), "--project", "kelp")
    assert told.exit_code == 2
    assert "nowhere" in "".join(told.stderr.replace("│", "").split())  # the box breaks a long path anywhere
