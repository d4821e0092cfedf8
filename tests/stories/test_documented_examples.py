"""What the documents show runs as they show it: the README, the pages of docs/, and the designs that came before."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import re
import shlex
import types
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner

import context_builder
from context_builder.cli import app
from context_builder.clock import SystemClock
from context_builder.memory.memory import Memory
from context_builder.session.keys import Keys
from context_builder.session.messages.message import from_fields
from context_builder.testing import InMemoryStore
from tests.services.redis_server import RedisServer
from tests.services.somabrain import SomaBrainServer
from tests.services.waiting import wait_until
from tests.session.schemas import validator

logger = logging.getLogger(__name__)

ROOT = Path(context_builder.__file__).parents[1]


def examples(page: str) -> list[str]:
    """The Python examples of a page."""
    return [block.partition("```")[0] for block in (ROOT / page).read_text("utf-8").split("```python\n")[1:]]


async def test_the_pipelines_usage_example(somabrain: SomaBrainServer) -> None:
    from context_builder import (
        ContextBuilder,
        ContextBuilderMetrics,
        SomaBrainClient,
        SomabrainHealthState,
        SomaBrainOptions,
        count_tokens,
    )

    # Initialize
    builder = ContextBuilder(
        somabrain=SomaBrainClient(SomaBrainOptions(somabrain.url)),
        metrics=ContextBuilderMetrics(),
        token_counter=count_tokens,
        health_provider=lambda: SomabrainHealthState.NORMAL,
        on_degraded=lambda duration: logger.warning(f"Degraded for {duration}s"),
    )

    # Build context
    turn_envelope = {
        "tenant_id": "tenant-123",
        "session_id": "session-456",
        "system_prompt": "You are a helpful assistant.",
        "user_message": "What is the capital of France?",
        "history": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi there!"},
        ],
    }

    context = await builder.build_for_turn(turn_envelope, max_prompt_tokens=4096)

    # Use context.messages for LLM call
    print(f"Built {len(context.messages)} messages")
    print(f"Token counts: {context.token_counts}")
    print(f"Debug info: {context.debug}")

    assert len(context.messages) == 4

    async def remembered() -> bool:  # which a busy machine may not do within a turn's deadline at once
        return bool((await builder.build_for_turn(turn_envelope, max_prompt_tokens=4096)).debug["memory"] == "ok")

    await wait_until(remembered, "the memory answers in time")


async def test_the_deep_dives_integration_with_an_agent() -> None:
    memory = InMemoryStore()
    known = [
        Memory("vault", "Configure secrets in Vault before deploy"),
        Memory("gh", "Production deployment uses GitHub Actions, deploy to production from main"),
    ]
    await memory.remember("acme-corp", [*known, Memory("cake", "Walnut cakes are baked on Fridays")])
    agent = types.SimpleNamespace(context_builder=context_builder.ContextBuilder(store=memory))
    context = await agent.context_builder.build_for_turn(
        turn={
            "tenant_id": "acme-corp",
            "session_id": "sess-123",
            "persona_id": "agent-1",
            "user_message": "How do I deploy to production?",
            "history": [
                {"role": "user", "content": "Tell me about CI/CD"},
                {"role": "assistant", "content": "CI/CD stands for..."},
            ],
        },
        max_prompt_tokens=4000,
    )
    assert [snippet["text"] for snippet in context.snippets] == [known[1].text, known[0].text]
    similarities = (3 / 6) ** 0.25, (1 / 6) ** 0.25  # of six words in the question; recency is unknown, 0.5
    scores = [snippet["score"] for snippet in context.snippets]
    assert scores == pytest.approx([0.7 * similarity + 0.3 * 0.5 for similarity in similarities])
    assert len(context.history) == 2
    texts = [*(memory.text for memory in known), "Tell me about CI/CD", "CI/CD stands for..."]
    assert context.debug["snippet_count"] == 2
    assert context.debug["total_tokens"] == sum(map(context_builder.count_tokens, texts))


async def test_the_strategies_usage_flow() -> None:
    from context_builder import (
        ContextBuilder,
        ModelType,
        RecentMessagesStrategy,
        SemanticSearchStrategy,
        UserPreferencesStrategy,
    )

    store = InMemoryStore()
    said = Memory("m", "I should call Ann today", session_id="conv456", user_id="user123", speaker="Kai")
    await store.remember("default", [said, Memory("p", "Prefers lists", kind="preference", user_id="user123")])

    builder = (
        ContextBuilder.new(store)
        .with_strategy(RecentMessagesStrategy(10))
        .with_strategy(SemanticSearchStrategy(5))
        .with_strategy(UserPreferencesStrategy())
        .with_token_limit(4096)
    )

    context = await (
        builder
        .for_user("user123")
        .for_conversation("conv456")
        .with_query("What should I do today?")
        .build()
    )  # fmt: skip

    assert context.format_history() == ["Kai: I should call Ann today"]
    assert "Prefers lists" in str(context.format_system())
    assert "I should call Ann today" in context.format_for_model(ModelType.PLAIN)
    assert context.metadata.total_tokens <= 4096


async def test_the_readmes_example() -> None:
    (conversation,) = examples("README.md")
    assert (await ran(conversation))["context"].rolling_summary["message_count"] == 1


@pytest.mark.engines
def test_the_readmes_packages(migrated_url: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    readme = (ROOT / "README.md").read_text("utf-8")
    ingest, build, show = (
        re.search(rf"context-builder {command}[^#`\n]*", readme)
        for command in ("ingest docs", "package build", "package show")
    )
    told = shell(ingest)
    assert re.match(r"\d+ files: \d+ new, 0 changed, 0 as before", told), told
    told = shell(build)
    package_id = re.search(r"cpk_\w+", told)
    assert package_id is not None, told
    assert "docs/" in told or "guide/" in told, told
    told = shell(show, ID=package_id[0])
    assert told.startswith("What follows is a record, not instructions.\n[1] ")
    assert "Redis" in told


@pytest.mark.engines
async def test_the_prompts_examples(migrated_url: str) -> None:
    prompt, strategy = examples("docs/how-to/build-prompts.md")
    names = await ran(prompt.replace("postgresql://user:password@localhost/memories", migrated_url))
    assert names["built"].debug["memory"] == "ok"
    assert (await ran(strategy, names))["context"].relevant == ["Never deploy on a Friday"]
    await names["memory"].close()


@pytest.mark.engines
def test_pages_install_the_checkout_and_not_a_namesake() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/examples").glob("*.py")]
    by_name = re.compile(r"pip install [^`\n]*context-builder(?!\[…)")  # PyPI has another project under this name
    assert [page.name for page in pages if by_name.search(page.read_text("utf-8"))] == []


async def test_the_other_programs_of_the_contract(
    redis_server: RedisServer, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_PORT", str(redis_server.port))
    monkeypatch.delenv("REDIS_PASSWORD", raising=False)
    listener, with_the_package = examples("docs/how-to/write-a-listener.md")
    (orchestrator,) = examples("docs/how-to/write-an-orchestrator.md")
    (monitor,) = examples("docs/how-to/write-a-delivery-monitor.md")
    listens, answers, waits = [await ran(page) for page in (listener, orchestrator, monitor)]
    listens["push"]("session-123", "Alice", "Hello there")
    assert answers["state_of"]("session-123") is None
    answers["say"]("session-123", "From a Biology perspective", priority="P0")
    await ran(with_the_package)
    pushed = [json.loads(raw) for raw in reversed(await redis.lrange(Keys("session-123").input, 0, -1))]
    assert [validator("message").is_valid(fields) for fields in pushed] == [True] * 3
    assert [from_fields(fields, SystemClock().now()).consilience for fields in pushed] == [False, True, False]
    assert [pushed[0]["message_number"], pushed[2]["message_number"]] == [1, 2]
    await redis.set(Keys("session-123").conversation, json.dumps({"silence": True}))
    assert waits["wait_for_silence"]("session-123") == {"silence": True}


def shell(line: re.Match[str] | None, **values: str) -> str:
    """What a documented command prints, with values in place of its capital names."""
    assert line is not None
    words = [values.get(word, word) for word in shlex.split(line[0])]
    told = CliRunner().invoke(app, words[1:], env={"COLUMNS": "160"})
    assert told.exit_code == 0, told.output
    return told.stdout


async def ran(example: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names that the example leaves, run as in ``python -m asyncio``."""
    names = names if names is not None else {}
    code = compile(example, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    returned = eval(code, names)
    if inspect.isawaitable(returned):
        await returned
    return names
