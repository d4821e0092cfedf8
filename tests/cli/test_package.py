"""``package`` builds, opens, explains and lists packages of context."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.clock import moment
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Sensitivity, Status
from context_builder.knowledge.events import EVENT_STREAM
from context_builder.knowledge.store import KnowledgeStore
from context_builder.memory.memory import Memory
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.tokens.counter import count_tokens
from tests.cli.samples import sample_state
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

HOSTILE = "Clips \x1b]0;owned\x07[bold]not markup[/bold]"
CONTENTS = {
    "artifact:clips": "Hydrophone clips are labelled by two people.",
    "artifact:long": "\n\n".join(f"Hydrophone clips of day {day} were labelled, and counted." for day in range(60)),
    "artifact:keys": "Hydrophone clips need the key of the vault.",
}


@pytest.fixture(autouse=True)
def knowledge(migrated_url: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    monkeypatch.setenv("REDIS_URL", redis_server.url)

    async def store() -> None:
        database = PostgresDatabase(migrated_url)
        for ref, content in CONTENTS.items():
            artifact = Artifact(
                kind=ArtifactKind.DOCUMENT,
                title=HOSTILE if ref == "artifact:clips" else ref,
                content=content,
                status=Status.APPROVED,
                sensitivity=Sensitivity.RESTRICTED if ref == "artifact:keys" else Sensitivity.INTERNAL,
                project_id="kelp",
            )
            await KnowledgeStore(database).put("default", ref, artifact)
        await database.close()

    asyncio.run(store())


def package(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["package", *arguments], env={"COLUMNS": "160"})


def built(*arguments: str) -> dict[str, Any]:
    told = package("build", "--intent", "hydrophone clips", "--project", "kelp", *arguments, "--json")
    assert told.exit_code == 0, told.output
    document: dict[str, Any] = json.loads(told.stdout)
    return document


def test_what_is_in_a_package_is_told(redis_server: RedisServer) -> None:
    told = package("build", "-i", "hydrophone clips", "--project", "kelp", "--budget", "2000")
    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert lines[0].split() == ["source", "origin", "verdict", "tokens", "score"]
    assert any("[bold]not markup[/bold] (document)" in line and " full " in line for line in lines)
    assert "\x1b" not in told.stdout
    assert " of 2,000 tokens; 1 denied, 0 redacted, 0 left out" in told.stdout
    package_id = next(line for line in lines if line.startswith("cpk_")).partition(",")[0]
    with Redis.from_url(redis_server.url) as redis:
        assert redis.exists(f"context_builder:package:{package_id}")


def test_events_are_told_when_the_command_ends_without_a_server(redis_server: RedisServer) -> None:
    with Redis.from_url(redis_server.url) as redis:
        redis.delete(EVENT_STREAM)
        made = built()
        events = [json.loads(fields[b"event"]) for _, fields in redis.xrange(EVENT_STREAM)]
    ids = [made["contextBuildRequestId"], made["contextPackageId"]]
    assert [one["subject"] for one in events][-2:] == ids


def test_each_candidate_is_explained_and_what_more_tokens_would_add() -> None:
    told = package("build", "-i", "hydrophone clips", "--project", "kelp", "--budget", "80", "--explain")
    assert told.exit_code == 0, told.output
    header = next(line.split() for line in told.stdout.splitlines() if line.startswith("candidate"))
    assert header == ["candidate", "verdict", "tokens", "score", "origin:", "signals;", "why"]
    words = set(told.stdout.split())
    assert {"semantic", "graph", "recency", "quality", "reuse"} <= words
    denied = next(line for line in told.stdout.splitlines() if line.startswith("artifact:keys"))
    assert " denied " in denied
    assert "no policy permits" in " ".join(told.stdout.split())
    assert "500 more tokens would add: artifact:long (" in told.stdout


def test_what_more_tokens_would_add_is_what_they_add() -> None:
    small = built("--budget", "80", "--explain", "--task", "t-2")
    held = {one["ref"]: one["tokens"] for one in small["sources"]}
    larger = {one["ref"]: one["tokens"] for one in built("--budget", "580")["sources"]}
    gained = {ref: tokens for ref, tokens in larger.items() if tokens > held.get(ref, 0)}
    assert gained
    assert {one["ref"]: one["tokens"] for one in small["addedBy500"]} == gained
    listed = json.loads(package("list", "--task", "t-2", "--json").stdout)
    assert len(listed) == 1  # to tell what more would add makes no package


def audit_of(package_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(package("audit", package_id, "--json").stdout)
    return found


def test_a_package_is_shown_listed_and_explained_again() -> None:
    made = built("--task", "t-1", "--pin", "artifact:long")
    package_id = made["contextPackageId"]
    assert json.loads(package("show", package_id, "--json").stdout) == made
    prompt = package("show", package_id, "--prompt").stdout
    assert count_tokens(prompt.removesuffix("\n")) == made["tokensUsed"]
    assert package("list", "--task", "t-1").stdout.startswith(f"{package_id}  2")
    newest = package("list").stdout.splitlines()[0]
    assert newest.startswith(f"{package_id}  2")
    assert newest.endswith(f"  {audit_of(package_id)['request']['intent']}")
    audit = audit_of(package_id)
    assert (audit["sub"], audit["roles"]) == ("local", ["writer"])
    tokens = {one["ref"]: one["tokens"] for one in audit["candidates"] if one["tokens"]}
    assert tokens == {one["ref"]: one["tokens"] for one in made["sources"]}
    assert "artifact:keys" in package("audit", package_id).stdout


@pytest.mark.parametrize(
    ("arguments", "told", "status"),
    [
        (("show", "cpk_0"), "there is no context package cpk_0", 1),
        (("audit", "cpk_0", "--json"), "there is no context package cpk_0", 1),
        (("build", "-i", "clips", "-b", "9", "--pin", "artifact:clips"), "in tokens: artifact:clips (", 1),
    ],
)
def test_what_cannot_be_is_one_line(arguments: tuple[str, ...], told: str, status: int) -> None:
    result = package(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (status, 1)
    assert told in result.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("build", "-i", ""), "intent"),
        (("build", "-i", "x", "--pin", "a b"), "pinned"),
        (("build", "-i", "x", "--budget", "0"), "budget"),
        (("build", "-i", "x", "--since", "yesterday"), "since"),
        (("build", "-i", "x", "--since", "2026-03-03", "--until", "2026-03-01"), "first day"),
        (("build", "-i", "x", "--json", "--prompt"), "exclude"),
        (("list", "--task", "a", "--ref", "b"), "--task"),
    ],
)
def test_what_is_asked_wrongly_is_named(arguments: tuple[str, ...], named: str) -> None:
    result = package(*arguments)
    assert result.exit_code == 2
    assert named in result.stderr


def test_another_tenants_package_is_not_there() -> None:
    package_id = built()["contextPackageId"]
    assert package("show", package_id, "--tenant", "club").exit_code == 1


def test_without_a_redis_a_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    told = package("build", "-i", "hydrophone clips")
    assert told.exit_code == 0, told.output
    assert "not every search was complete: " in told.stdout
    assert "cache: unavailable" in told.stdout


def test_a_projects_documents_take_part_in_a_sessions_prompt(redis_server: RedisServer) -> None:
    with Redis.from_url(redis_server.url) as redis:
        redis.set("context_builder:monday:state", json.dumps(sample_state(session_id="monday")))
    asked = ["build", "monday", "-q", "hydrophone clips", "--package-scope", "kelp", "--json", "--explain"]
    for _ in range(5):  # a busy machine may miss a turn's deadline
        told = json.loads(CliRunner().invoke(app, asked).stdout)
        if told["debug"]["memory"] == "ok":
            break
    prompt = str(told["messages"])
    assert "labelled by two people" in prompt
    assert "key of the vault" not in prompt
    outcomes = {one["id"]: one["outcome"] for one in told["receipts"]}
    assert (outcomes["artifact:clips"], outcomes["artifact:keys"]) == ("included", "denied")


def test_what_ingestion_prunes_leaves_the_cache(tmp_path: Path, redis_server: RedisServer) -> None:
    (tmp_path / "vault.md").write_text("Hydrophone clips of the vault.")
    (tmp_path / "kept.md").write_text("Nothing else.")
    ingest = ["ingest", str(tmp_path), "--project", "kelp", "--prune"]
    assert CliRunner().invoke(app, ingest).exit_code == 0
    made = built()
    assert any("of the vault" in one["content"] for one in made["sources"])
    with Redis.from_url(redis_server.url) as redis:
        assert redis.exists(key := f"context_builder:package:{made['contextPackageId']}")
        (tmp_path / "vault.md").unlink()
        assert "1 erased" in CliRunner().invoke(app, ingest).stdout
        assert not redis.exists(key)


def test_a_package_is_rated_and_outcomes_tell_how_packages_did() -> None:
    name = built("--intent", "hydrophone clips")["contextPackageId"]
    unknown = package("rate", name, "--helped", "artifact:clips=0.5", "--helped", "artifact:clip").stderr
    assert unknown == "artifact:clip is not in the package, so nothing is noted of it\n"
    rated = package("rate", name, "--outcome", "0.75", "--helped", "artifact:clips=0.5", "--note", "It lacks the days.")
    assert (rated.exit_code, rated.output) == (0, "")
    shown = CliRunner().invoke(app, ["outcomes"], env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "artifact:clips" in shown.output
    assert "0.75" in shown.output
    assert "It lacks the days." in shown.output
    told = json.loads(CliRunner().invoke(app, ["outcomes", "--json"]).stdout)
    assert (told["packages"], told["overall"]["mean"]) == (1, 0.75)


@pytest.mark.parametrize(
    "arguments", [(), ("--outcome", "2"), ("--helped", "a=x"), ("--helped", "=1"), ("--helped", "a=nan")]
)
def test_a_rating_that_says_nothing_is_refused(arguments: tuple[str, ...]) -> None:
    assert package("rate", "cpk_1", *arguments).exit_code == 2


def test_what_is_remembered_is_searched_with_filters(migrated_url: str) -> None:
    async def remember() -> None:
        memory = PostgresMemory(migrated_url)
        said = [("Ann", "monday", "2026-03-02"), ("Ben", "monday", "2026-03-03"), ("Ann", "tuesday", "2026-03-04")]
        await memory.remember(
            "default",
            [
                Memory(
                    f"m-{n}",
                    f"The boat is loud {n}.",
                    session_id=session,
                    speaker=speaker,
                    position=n,
                    time=moment(day),
                )
                for n, (speaker, session, day) in enumerate(said)
            ],
        )
        await memory.close()

    asyncio.run(remember())

    def packed(*arguments: str) -> list[str]:
        told = package("build", "--intent", "loud boat", "--json", *arguments)
        return sorted(one["ref"] for one in json.loads(told.stdout)["sources"])

    assert packed("--kind", "message", "--speaker", "Ann") == ["message:monday/0", "message:tuesday/2"]
    assert packed("--kind", "message", "--since", "2026-03-03", "--until", "2026-03-03") == ["message:monday/1"]
    assert packed("--kind", "point") == []

    def found(*arguments: str) -> list[str]:
        result = CliRunner().invoke(app, ["search", "loud boat", "--json", *arguments])
        return sorted(one["id"] for one in json.loads(result.stdout)["memories"])

    assert found() == ["m-0", "m-1", "m-2"]
    assert found("--speaker", "Ann") == ["m-0", "m-2"]
    assert found("--session", "monday", "--since", "2026-03-03") == ["m-1"]
    assert found("--until", "2026-03-02") == ["m-0"]
    assert found("--kind", "point") == []
    shown = CliRunner().invoke(app, ["search", "loud boat", "--speaker", "Ben"])
    assert (shown.exit_code, "The boat is loud 1." in shown.output) == (0, True)
    assert CliRunner().invoke(app, ["search", "x", "--since", "yesterday"]).exit_code == 2
    assert CliRunner().invoke(app, ["search", "x", "--since", "2026-03-03", "--until", "2026-03-01"]).exit_code == 2


def test_a_project_that_is_not_there_is_an_error_and_not_an_empty_package() -> None:
    result = package("build", "--intent", "Hydrophone clips", "--project", "klep")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "context-builder: there is no project klep; `context-builder ingest FOLDER --project klep` adds files\n"
    )
