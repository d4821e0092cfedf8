"""Whatever somebody writes into what a session publishes, nothing fails, and other sessions are shown as ever."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any, Final

import asyncpg
import orjson
import pytest
from redis.asyncio import Redis

from context_builder.memory.memory import Memory
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from context_builder.session.conversation.state import take_session_state, write_head
from context_builder.session.keys import SESSIONS, Keys
from context_builder.testing import ManualClock
from tests.cli.samples import sample_conversation, sample_state
from tests.damage import damaged
from tests.server.page.conftest import logged_in
from tests.services.api_server import TENANT, ApiServer
from tests.session.conversation.test_state import lively

pytestmark = pytest.mark.engines

PUBLISHED: Final = (None, True, -1, 1e300, 2**62, "x\x00", [[]], {"x": {}})
"""Values that other programs may write; each field has each of them in some session."""

TURN: Final = {"query": "Where does the otter sleep?", "tokenBudget": 500}
LOOKED_AT: Final = 40
"""Sessions of which every page is looked at; lists show all."""

SHOWN: Final = (
    "/sessions/{}/state",
    "/sessions/{}/messages",
    "/ui/sessions/{}",
    "/ui/data/sessions/{}/messages?before=99",
    "/ui/sessions/{}/revisions",
    "/sessions/{}/turn",
)
LISTED: Final = ("/sessions", "/ui/sessions", "/ui/health", "/readyz", "/memories/search?q=otter")


def damages(state: Any, head: Any, conversation: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is damaged, and the three as one session has them."""
    whole = {"state": state, "head": head, "conversation": conversation}
    for key, value in whole.items():
        for place, other in damaged(value, PUBLISHED, key):
            yield place, {**whole, key: other}


async def damaged_sessions(redis: Redis) -> dict[str, str]:
    """What is damaged in each of many sessions, by their ids."""
    clock = ManualClock()
    subject = lively(clock)
    published = orjson.loads(bytes(take_session_state(subject, 1, clock.now())))
    found: dict[str, str] = {}
    async with redis.pipeline(transaction=False) as pipe:
        for place, held in damages(published, orjson.loads(write_head(subject)), sample_conversation()):
            found[name := f"broken-{len(found)}"] = place
            keys = Keys(name)
            pipe.set(keys.state, orjson.dumps(held["state"]))
            pipe.set(keys.conversation, orjson.dumps(held["conversation"]))
            pipe.hset(keys.checkpoint, "head", orjson.dumps(held["head"]))
            pipe.zadd(SESSIONS, {name: clock.now().wall})
        await pipe.execute()
    return found


async def test_every_document_of_a_memory(own_api: ApiServer, redis: Redis) -> None:
    api = own_api
    documents = [*PUBLISHED, *({name: one} for name in ("published", "keywords", "consilience") for one in PUBLISHED)]
    memory = PostgresMemory(api.database_url)
    said = [
        Memory(f"broken/{n}", f"The otter sleeps {n}.", session_id="monday", speaker="Ann", position=n)
        for n in range(len(documents))
    ]
    await memory.remember(TENANT, said)
    await memory.close()
    connection = await asyncpg.connect(api.database_url)
    change = "UPDATE context_memories SET metadata = $2::jsonb, feedback = $2::jsonb WHERE id = $1"
    for number, document in enumerate(documents):
        text = orjson.dumps(document).decode().replace("\\u0000", "")
        await connection.execute(change, f"broken/{number}", text)
    await connection.close()
    wrong = []
    async with api.client(api.key()) as client, api.client() as page:
        await logged_in(api, page, api.key())
        for path in ("/sessions/monday/messages", "/memories/search?q=otter&limit=50", "/ui/memory?q=otter"):
            answer = await (page if path.startswith("/ui") else client).get(path)
            wrong += [(path, answer.status_code)] if answer.status_code != 200 else []
        built = await client.post("/knowledge/context/build", json={"intent": "otter", "tokenBudget": 2_000})
        wrong += [("build", built.status_code)] if built.status_code != 200 else []
    assert wrong == []


RAW: Final = (b"", b"\x00\xff", b"[]", b"{}", b'{"id":1}', b'{"id":"x","text":1,"corrects":{}}', b"[" * 100_000)
"""Items of lists that no session wrote."""

WAITING: Final = ("input", "pending", "outbox", "memory_outbox", "dead", "archive_dead", "memory_dead")


async def test_every_item_of_every_list(own_api: ApiServer, redis: Redis) -> None:
    api, names = own_api, [f"item-{number}" for number in range(len(RAW))]
    for name, raw in zip(names, RAW, strict=True):
        keys = Keys(name)
        await redis.set(keys.state, orjson.dumps(sample_state(session_id=name)))
        await redis.zadd(SESSIONS, {name: 1})
        for key in WAITING:
            await redis.rpush(getattr(keys, key), raw)
        await redis.hset(keys.checkpoint, mapping={"x:1": raw, "x:x": raw, "archive_dead": raw})
        await redis.hset(keys.message_index, mapping={"n:1": raw, "i:1": raw})
    wrong = []
    async with api.client(api.key(Role.ADMIN)) as client, api.client() as page:
        await logged_in(api, page, api.key(Role.ADMIN))
        paths = [*LISTED, *(path.format(name) for name in names for path in (*SHOWN, "/ui/dead/{}"))]
        for path in paths:
            who = page if path.startswith("/ui") else client
            answer = await (who.post(path, json=TURN) if path.endswith("/turn") else who.get(path))
            if answer.status_code not in {200, 503}:
                wrong.append((path, answer.status_code))
        for name in names:
            answer = await client.patch(f"/sessions/{name}/messages/1", json={"text": "It says otherwise."})
            if answer.status_code not in {202, 404, 503}:
                wrong.append((f"PATCH {name}", answer.status_code))
    assert wrong == []


async def test_every_field_of_every_session(own_api: ApiServer, redis: Redis) -> None:
    api = own_api
    found = await damaged_sessions(redis)
    shown = random.Random(7).sample([*found], LOOKED_AT)
    wrong = []
    async with api.client(api.key()) as client, api.client() as page:
        await logged_in(api, page, api.key())
        turns = asyncio.Semaphore(4)

        async def ask(path: str, name: str = "") -> None:
            async with turns:
                who = page if path.startswith("/ui") else client
                answer = await (who.post(path, json=TURN) if path.endswith("/turn") else who.get(path))
            if answer.status_code not in ({200, 404, 503} if name else {200}):
                wrong.append((found.get(name), path, answer.status_code))

        await asyncio.gather(*map(ask, LISTED))
        await asyncio.gather(*(ask(path.format(name), name) for name in shown for path in SHOWN))
    assert wrong == []


@pytest.mark.parametrize("is_of_another_type", [False, True], ids=["damaged", "another type"])
async def test_to_try_again_is_not_advised_where_it_never_helps(
    own_api: ApiServer, redis: Redis, *, is_of_another_type: bool
) -> None:
    state = Keys("broken").state
    await (redis.rpush(state, "x") if is_of_another_type else redis.set(state, "[]"))
    await redis.zadd(SESSIONS, {"broken": 1})
    async with own_api.client(own_api.key()) as client:
        answers = [
            await client.get("/sessions/broken/state"),
            await client.post("/sessions/broken/turn", json=TURN),
        ]
    assert [one.status_code for one in answers] == [503, 503]
    assert [one.json()["type"] for one in answers] == ["urn:context-builder:refused"] * 2
    assert not any("Retry-After" in one.headers for one in answers)
