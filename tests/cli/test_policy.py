"""``policy`` keeps policy texts, checks them, and explains a decision."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Sensitivity
from context_builder.knowledge.store import KnowledgeStore

pytestmark = pytest.mark.engines

SHUT = '@id("shut")\nforbid (principal, action, resource) when { resource.kind == "document" };\n'


@pytest.fixture
def drafts(tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy file, beside a database with an internal and a confidential document."""
    monkeypatch.setenv("DATABASE_URL", migrated_url)

    async def store() -> None:
        database = PostgresDatabase(migrated_url)
        for ref, sensitivity in (("artifact:clips", "internal"), ("artifact:pay", "confidential")):
            artifact = Artifact(
                kind=ArtifactKind.DOCUMENT, title="T", content="Text.", sensitivity=Sensitivity(sensitivity)
            )
            await KnowledgeStore(database).put("default", ref, artifact)
        await database.close()

    asyncio.run(store())
    file = tmp_path / "drafts.cedar"
    file.write_text(SHUT)
    return file


def policy(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["policy", *map(str, arguments)], env={"COLUMNS": "160"})


def test_a_text_is_stored_listed_shown_and_deleted(drafts: Path) -> None:
    assert "drafts is stored; the policies are now sha256:" in policy("put", "drafts", drafts).stdout
    listed = json.loads(policy("list", "--json").stdout)
    assert [one["name"] for one in listed["texts"]] == ["default", "drafts"]
    assert "drafts  1 policy" in policy("list").stdout
    assert policy("show", "drafts").stdout == SHUT + "\n"
    assert json.loads(policy("show", "drafts", "--json").stdout)["text"] == SHUT
    assert policy("delete", "drafts").exit_code == 0
    gone = policy("show", "drafts")
    assert (gone.exit_code, gone.stderr.count("\n")) == (1, 1)
    assert policy("delete", "drafts").exit_code == 1


def test_a_wrong_text_is_told_with_line_and_column_and_not_stored(drafts: Path) -> None:
    drafts.write_text("// everybody\npermit (principal,\n action resource);")
    for arguments in (("check", drafts), ("put", "drafts", drafts)):
        told = policy(*arguments)
        assert (told.exit_code, told.stderr.count("\n")) == (1, 1)
        assert "line 2, column 1: unexpected token `resource`" in told.stderr
    (checked,) = json.loads(policy("check", drafts, "--json").stdout)
    assert (checked["ok"], checked["line"], checked["column"]) == (False, 2, 1)
    assert "drafts" not in policy("list").stdout


def test_a_text_that_does_not_fit_the_schema_is_told(drafts: Path) -> None:
    drafts.write_text("permit (principal, action, resource)\nwhen { resource.colour == 1 };")
    told = policy("check", drafts)
    assert told.exit_code == 1
    assert "line 1, column 1: attribute `colour`" in told.stderr
    drafts.write_text(SHUT)
    assert policy("check", drafts).stdout.endswith("1 policy, all fit\n")


def test_a_decision_is_explained_for_each_action(drafts: Path) -> None:
    found = json.loads(policy("check", "--ref", "artifact:pay", "--json").stdout)
    assert found["access"] == "redacted"
    allowed = {one["action"]: one["allowed"] for one in found["actions"]}
    assert allowed == {"read": False, "readRedacted": True}
    assert all(one.startswith("default#") for one in found["policies"])
    shown = policy("check", "--ref", "artifact:clips", "--role", "reader", "--sub", "ann").stdout
    assert "artifact:clips (document, draft, internal)" in shown
    assert "read for ann (reader): policy default#" in shown
    assert [line.split()[:2] for line in shown.splitlines()[-2:]] == [["read", "yes"], ["readRedacted", "no"]]


def test_files_are_tried_without_being_stored(drafts: Path) -> None:
    found = json.loads(policy("check", drafts, "--ref", "artifact:clips", "--json").stdout)
    assert (found["access"], found["policies"]) == ("denied", ["drafts#shut"])
    assert all(one["reason"].startswith("policy drafts#shut forbids") for one in found["actions"])
    assert json.loads(policy("check", "--ref", "artifact:clips", "--json").stdout)["access"] == "read"
    nothing = drafts.with_name("default.cedar")
    nothing.write_text("")
    replaced = json.loads(policy("check", nothing, "--ref", "artifact:clips", "--json").stdout)
    assert (replaced["access"], replaced["reason"]) == ("denied", "no policy permits")
    drafts.write_text("permit (principal, action, resource);")
    alone = json.loads(policy("check", drafts, "--only", "--ref", "artifact:clips", "--json").stdout)
    assert (alone["access"], alone["policies"]) == ("read", ["drafts#1"])


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("check",), 2), (("check", "--ref", "artifact:none"), 1), (("put", "drafts", "nowhere.cedar"), 2)],
)
def test_what_is_wrong_is_told(drafts: Path, arguments: tuple[str, ...], status: int) -> None:
    told = policy(*arguments)
    assert (told.exit_code, "Traceback" in told.output) == (status, False)
