"""What takes megabytes to answer is made beside the loop: others are answered meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from context_builder.assembly.session_state import published_messages
from context_builder.knowledge.audit import CandidateAudit
from context_builder.knowledge.governance import Access
from context_builder.knowledge.view import KnownSources
from context_builder.server import event_stream
from context_builder.server.access.caller import Role
from context_builder.server.guarded_route import as_json
from context_builder.server.page import rendering
from context_builder.server.seen_session import LOOKED_AT, first_seen
from context_builder.session import client as session_client
from context_builder.session.client import SessionClient
from context_builder.session.keys import SESSIONS
from context_builder.session.stored import STATE
from tests.cli.samples import sample_state
from tests.security.others import others_are_answered
from tests.server.page.conftest import logged_in
from tests.services.api_server import ApiServer

WORDS = "the survey of the kelp at the harbour and the urchins "


def large_state(session_id: str) -> dict[str, Any]:
    """A state of some megabytes: of a session that was flooded with messages."""
    base = sample_state(session_id=session_id)
    said = base["raw_recent_buffer"][0]
    buffer = [{**said, "id": n, "message_number": n, "text": f"{n} {WORDS * 10}"} for n in range(2_000)]
    points = [{"id": n, "text": f"{WORDS} {n}", "kind": "claim", "by": ["Ann"], "ids": [n]} for n in range(500)]
    answers = [{**one, "type": "consilience", "text": f"It is said: {one['text']}"} for one in buffer[:500]]
    summary = {**base["rolling_summary"], "points": points}
    return base | {"raw_recent_buffer": buffer, "consilience_responses": answers, "rolling_summary": summary}


async def large_session(redis: Redis) -> str:
    """Publish a large state, and return the id of its session."""
    name = f"large-{uuid4().hex[:8]}"
    await redis.set(f"context_builder:{name}:state", json.dumps(large_state(name)))
    return name


@pytest.mark.engines
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/sessions?limit=1000"),
        ("GET", "/sessions/{}/state"),
        ("GET", "/sessions/{}/messages?limit=1000"),
        ("POST", "/sessions/{}/turn"),
    ],
)
async def test_a_large_answer_holds_up_nobody(api: ApiServer, redis: Redis, method: str, path: str) -> None:
    name = await large_session(redis)
    await redis.zadd(SESSIONS, {name: 1, **{f"s{number}": number for number in range(3_000)}})
    body = {"query": WORDS, "tokenBudget": 500_000} if method == "POST" else None
    async with api.client(api.key(Role.WRITER), timeout=120) as client, others_are_answered(api):
        answer = await client.request(method, path.format(name), json=body)
    assert answer.status_code == 200, answer.text[:500]
    assert len(answer.content) > 100_000


@pytest.mark.engines
@pytest.mark.parametrize(
    "path", ["/ui/sessions/{}", "/ui/sessions/{}/revisions", "/ui/prompt?session={}&query=kelp&budget=100000"]
)
async def test_a_page_of_a_large_session_holds_up_nobody(api: ApiServer, redis: Redis, path: str) -> None:
    name = await large_session(redis)
    async with api.client(timeout=120) as page:
        await logged_in(api, page, api.key(Role.WRITER))
        await page.get("/ui/sessions")  # what a process does once is nobody's fault
        async with others_are_answered(api):
            assert (await page.get(path.format(name))).status_code == 200


@pytest.mark.engines
async def test_a_tool_of_a_large_session_holds_up_nobody(api: ApiServer, redis: Redis) -> None:
    name = await large_session(redis)
    called = {"name": "session_state", "arguments": {"sessionId": name}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    accepted = {"Accept": "application/json, text/event-stream"}
    async with api.client(api.key(), headers=accepted, timeout=120) as client, others_are_answered(api):
        answer = await client.post("/mcp", json=asked)
    assert len(answer.content) > 1_000_000


async def test_the_state_of_a_large_session_is_read_beside_the_loop(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr(STATE, "known", lambda value: read.append(threading.get_ident()) or value)
    session = SessionClient(redis, await large_session(redis))
    assert await session.state() is not None
    assert (await session.snapshot()).state is not None
    assert len(read) == 2
    assert threading.get_ident() not in read


async def test_the_points_of_a_large_session_are_read_beside_the_loop(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr(session_client, "explain", lambda fields: read.append(threading.get_ident()) or [])
    assert await SessionClient(redis, "monday").points() == []
    assert len(read) == 1
    assert threading.get_ident() not in read


async def test_a_large_event_is_written_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    monkeypatch.setattr(event_stream, "event", lambda *_: written.append(threading.get_ident()) or b"data")
    assert await event_stream.written_event("state", {}) == b"data"
    assert threading.get_ident() not in written


async def test_a_page_is_rendered_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []
    template = SimpleNamespace(render=lambda _: rendered.append(threading.get_ident()) or "page")
    monkeypatch.setattr(rendering, "_templates", lambda: SimpleNamespace(get_template=lambda _: template))
    request: Any = SimpleNamespace(scope={"state": {}, "path": "/ui/"})
    assert (await rendering.render(request, "prompt.html", title="Prompt")).body == b"page"
    assert threading.get_ident() not in rendered


def test_what_may_be_told_of_many_candidates_is_decided_once_for_each() -> None:
    class Counted(KnownSources):
        asked = 0

        def names(self, ref: str, recorded: str) -> bool:
            self.asked += 1
            return super().names(ref, recorded)

    fields = {"version": 1, "reason": "", "score": 1.0, "signals": {}, "tokens": 1, "origins": ()}
    candidates = [CandidateAudit(ref=f"artifact:{n}", verdict="read", **fields) for n in range(300)]
    known = Counted({one.ref: Access.READ for one in candidates}, frozenset())
    assert known.candidates(candidates) == tuple(candidates)
    assert known.asked == len(candidates)


async def test_an_answer_is_made_beside_the_loop() -> None:
    made: list[int] = []
    answer = await as_json(lambda: made.append(threading.get_ident()), Link="</sessions>")
    assert made != [threading.get_ident()]
    assert (answer.body, answer.headers["Link"], answer.media_type) == (b"null", "</sessions>", "application/json")


async def test_of_many_sessions_those_behind_the_page_are_not_looked_at() -> None:
    asked: list[str] = []

    async def sensitivities(tenant: str, names: list[str]) -> dict[str, str]:
        asked.extend(names)
        return {}

    async def access(agent: object, sources: list[Any]) -> list[Access]:
        return [Access.DENIED if one.session == "s0" else Access.READ for one in sources]

    viewer = SimpleNamespace(access=access)
    services: Any = SimpleNamespace(
        knowledge=SimpleNamespace(sensitivities=sensitivities), packages=SimpleNamespace(viewer=viewer)
    )
    sessions: Any = [SimpleNamespace(session_id=f"s{number}") for number in range(5 * LOOKED_AT)]
    caller: Any = SimpleNamespace(tenant_id="lab", agent=None)
    found = await first_seen(services, caller, sessions, 2)
    assert ([one.session_id for one in found], len(asked)) == (["s1", "s2"], LOOKED_AT)


class CountingState(dict[str, Any]):
    """A state that counts how often its summary is looked at."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += key == "rolling_summary"
        return super().get(key, default)


def test_the_summary_of_a_state_is_looked_at_as_often_however_much_an_assistant_said() -> None:
    def looks(most: int) -> Iterator[int]:
        state = CountingState(large_state("monday"))
        state["consilience_responses"] = state["consilience_responses"][:most]
        published_messages(state)
        yield state.looks

    assert [*looks(500)] == [*looks(2)]
