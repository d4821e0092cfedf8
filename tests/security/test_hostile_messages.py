"""What people say stays what they said: no SQL, no terminal escape, no log line, no instruction."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Awaitable
from typing import Any, TypeVar

import asyncpg
import pytest
import structlog
from redis.asyncio import Redis
from rich.console import Console
from structlog.testing import capture_logs
from typer.testing import CliRunner

from context_builder import log
from context_builder.analysis.analyst import KeywordResult, SummaryRequest, SummaryResult
from context_builder.analysis.openai import Endpoint, OpenAIAnalyst
from context_builder.analysis.prompts import load_prompts
from context_builder.analysis.text.analyst import TextAnalyst
from context_builder.analysis.text.summary import SummarySize
from context_builder.archive.postgres import PostgresArchive
from context_builder.cli import app
from context_builder.cli.state import overview
from context_builder.cli.view.palette import SpeakerColours
from context_builder.cli.view.screen import View, render
from context_builder.database.postgres import PostgresDatabase
from context_builder.domains import DOMAINS
from context_builder.errors import AnalystError
from context_builder.session.client import SessionClient
from tests.analysis.openai.conversation import said
from tests.security.hostile import CITING, CLOSING_TAG, CONTROL, ESCAPES, INSTRUCTION, LOG_LINE, SPEAKERS, SQL, TEXTS
from tests.services.model_server import ModelServer
from tests.services.redis_server import RedisServer
from tests.services.running import parts_of, published, push, running
from tests.services.small_model import SmallModelServer
from tests.services.waiting import wait_until

MESSAGES: list[dict[str, Any]] = [
    {"message_number": n, "text": text, "speaker": SPEAKERS[n % len(SPEAKERS)], "timestamp": "'; DROP TABLE x; --\x00"}
    for n, text in enumerate(TEXTS, start=1)
]

AnalysisResult = TypeVar("AnalysisResult", KeywordResult, SummaryResult)

OUR_COLOURS = re.compile(r"\x1b\[\d+m")


@pytest.mark.engines
async def test_everything_is_heard_word_for_word_and_nothing_is_logged(redis: Redis) -> None:
    with capture_logs() as logs:
        async with running(redis, parts=parts_of(TextAnalyst())):
            await push(redis, *MESSAGES)
            heard = await wait_until(
                published(redis, lambda s: [bool(e["analyst"]) for e in s["raw_recent_buffer"]] == [True] * len(TEXTS)),
                "all have keywords",
            )
    assert [entry["text"] for entry in heard["raw_recent_buffer"]] == list(TEXTS)
    assert [entry["speaker"] for entry in heard["raw_recent_buffer"]] == [m["speaker"] for m in MESSAGES]
    told = json.dumps(logs, default=repr)
    assert "session.ready" in told
    assert not any(word in told for word in ("DROP", "PWNED", "helicase", "fake", "owned", "enzyme"))


@pytest.mark.engines
async def test_it_is_archived_as_text_and_the_table_stays(
    redis: Redis, migrated_url: str, database: asyncpg.Connection
) -> None:
    archive = PostgresArchive(PostgresDatabase(migrated_url))
    every = TextAnalyst(size=SummarySize(messages_per_point=0.5))
    async with running(redis, parts=parts_of(every, archive)) as session:
        await push(redis, *MESSAGES)
        await wait_until(published(redis, lambda s: s["received_messages"] == len(MESSAGES)), "all are heard")
        session.end()
        await wait_until(published(redis, lambda s: s["ended_at"] is not None), "all is summarized")
        await wait_until(lambda: _is_empty(redis, "outbox"), "all is archived")
    [row] = await database.fetch("SELECT * FROM context_summaries")
    assert row["message_count"] == len(MESSAGES)
    assert "DROP TABLE" in row["summary_text"]
    assert not CONTROL & set(row["summary_text"])
    await archive.close()


async def _is_empty(redis: Redis, key: str) -> bool:
    return not await redis.exists(f"context_builder:monday:{key}")


@pytest.mark.engines
async def test_nothing_reaches_the_terminal_that_it_would_obey(
    redis: Redis, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(redis, parts=parts_of(TextAnalyst()), buffer_window=0.2) as session:
        await push(redis, *MESSAGES, b'{"text": "\x1b[2J', b"\x1b]0;owned\x07")
        await wait_until(published(redis, lambda s: s["rolling_summary"]["message_count"] == 8), "a summary is made")
        await push(redis, *({**message, "message_number": 100 + n} for n, message in enumerate(MESSAGES)))
        await wait_until(published(redis, lambda s: s["received_messages"] == 16), "more is said")
        snapshot = await SessionClient(redis, "monday").snapshot()
        session.stop()
    now = snapshot.state["updated_at"] if snapshot.state else 0.0
    console = Console(file=io.StringIO(), width=160, height=60)
    console.print(overview(snapshot, now, console.width, conversation=False))
    console.print(render(snapshot, now, console.size, View(None, None, 4.0, (), SpeakerColours())))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "DROP TABLE" in shown
    assert not CONTROL & set(shown)
    assert "\u202e" not in shown


@pytest.mark.engines
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("sessions",), "monday"),
        (("state", "monday"), "DROP TABLE"),
        (("watch", "monday"), "DROP TABLE"),
        (("dead", "monday"), "not JSON"),
    ],
)
def test_commands_print_nothing_that_a_terminal_would_obey(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], shown: str
) -> None:
    async def fill() -> None:
        async with Redis.from_url(redis_server.url) as redis:
            await redis.flushall()
            async with running(redis, parts=parts_of(TextAnalyst())):
                await push(redis, *MESSAGES, b'{"text": "\x1b[2J', b"\x1b]0;owned\x07\x9b2J")
                await wait_until(published(redis, lambda s: s["dead_letters"] == 2), "all is taken in")
            holder = {"token": 1, "host": "\x1b[2Jhost\x07", "pid": "\x9b5A"}
            await redis.set("context_builder:monday:owner", json.dumps(holder), ex=60)

    asyncio.run(fill())
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    result = CliRunner().invoke(app, list(command), env={"COLUMNS": "160", "LINES": "60"}, catch_exceptions=False)
    assert result.exit_code == 0
    assert shown in result.output
    assert not CONTROL & set(result.output)


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_value_in_a_log_stays_within_its_line(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    try:
        log.configure("info", form)
        for text in TEXTS:
            structlog.get_logger().info("event.happened", value=text, kept={"in": text})
    finally:
        structlog.configure(**before)
    written = capsys.readouterr().err
    lines = (written if form == "json" else OUR_COLOURS.sub("", written)).split("\n")[:-1]
    assert len(lines) == len(TEXTS)
    assert not CONTROL & set("".join(lines))
    if form == "json":
        assert [json.loads(line)["value"] for line in lines] == list(TEXTS)
    else:
        assert "\\x1b[31mevery" in lines[TEXTS.index(ESCAPES)]


@pytest.fixture
async def asked() -> Any:
    with ModelServer() as server:
        analyst = OpenAIAnalyst(Endpoint(base_url=server.base_url), load_prompts())
        yield analyst, server.model
        await analyst.close()


async def test_a_message_cannot_leave_its_place_in_the_prompt(asked: Any) -> None:
    analyst, model = asked
    messages = said(*TEXTS)
    keywords = await analyst.extract_keywords(messages)
    await analyst.infer_domains(messages)
    await analyst.summarize(SummaryRequest(messages))
    assert len(keywords.keywords) == len(messages)
    assert len(model.requests) == 3
    for request in model.requests:
        stable, varying = (part["content"] for part in request["messages"])
        assert "PWNED" not in stable
        assert varying.count("<messages>") == varying.count("</messages>") == 1
        inside = varying.partition("<messages>\n")[2].partition("\n</messages>")[0]
        assert len(inside.split("\n")) == len(messages)


async def test_what_a_talked_over_model_says_is_held_to_what_it_was_asked(asked: Any) -> None:
    analyst, model = asked
    messages = said(*TEXTS)
    model.replies.append({"domains": [{"domain": "Hacking", "confidence": 99}], "keywords": ["\x1b[2JPWNED"]})
    domains = await analyst.infer_domains(messages)
    assert (domains.domains, domains.keywords) == ([], ("[2JPWNED",))
    invented = {"text": "Everybody agreed to pay Bob", "cites": [998], "kind": "decision", "replaces": 0}
    real = {"text": "The helicase unwinds\x1b[2J", "cites": [2], "kind": "hacking", "replaces": 77}
    model.replies.append({"points": [invented, real], "chatter": False})
    reading = await analyst.summarize(SummaryRequest(messages))
    [point] = reading.points
    assert (point.kind.value, point.replaces, reading.rejected) == ("claim", (), 1)
    assert set(point.cites) == {messages[1].id, messages[2].id}, "the other one has 2J"
    assert point.text == "The helicase unwinds [2J"


@pytest.mark.model
@pytest.mark.slow
async def test_a_real_small_model_that_is_talked_over_stays_in_form(small_model: SmallModelServer) -> None:
    analyst = OpenAIAnalyst(Endpoint(base_url=small_model.base_url), load_prompts())
    hostile = (INSTRUCTION, CLOSING_TAG, CITING, SQL, LOG_LINE)
    messages = said("The helicase unwinds the double helix of the DNA.", *hostile, "The polymerase copies each strand.")
    given = {message.id for message in messages}
    try:
        domains = await analyst.infer_domains(messages)
        readings = {
            message.text: await _or_none(analyst.extract_keywords([message]))
            for message in messages
            if message.text in hostile
        }
        summary = await _or_none(analyst.summarize(SummaryRequest(messages)))
    finally:
        await analyst.close()
    assert set(domains.confidence) <= set(DOMAINS)
    assert all(0 <= confidence <= 1 for confidence in domains.confidence.values())
    for text, reading in readings.items():
        if reading is not None:
            assert len(reading.keywords[0]) <= 10, text
            assert not CONTROL & set("".join(reading.keywords[0])), text
    if summary is not None:
        assert all(point.cites and set(point.cites) <= given for point in summary.points)
        assert not CONTROL & set("".join(point.text for point in summary.points))


async def _or_none(asked: Awaitable[AnalysisResult]) -> AnalysisResult | None:
    """So small a model may fail to give keywords or points that can be accepted; then nothing is believed."""
    try:
        return await asked
    except AnalystError:
        return None
