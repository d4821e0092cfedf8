"""With ``SA01_SOMA_BASE_URL``, a turn asks SomaBrain as its document writes it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from context_builder.assembly.builder import ContextBuilder
from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.memory.somabrain import SomaBrainStore
from context_builder.settings.settings import load_settings
from context_builder.wiring.builders import builder_of
from tests.services.somabrain import SomaBrainServer

TURN = {"tenant_id": "lab", "session_id": "monday", "user_id": "ida", "user_message": "How deep is the mooring?"}
SAID = Memory("m-1", "the mooring is forty metres deep", session_id="friday", speaker="Bo", time=datetime.now(UTC))


def built(somabrain: SomaBrainServer, somabrain_store: SomaBrainStore, **settings: str) -> ContextBuilder:
    environ = {"SA01_SOMA_BASE_URL": somabrain.url, "CONTEXT_DEADLINE": "30", "CONTEXT_THRESHOLD": "0.1", **settings}
    return builder_of(load_settings(environ, env_file=None), somabrain_store)


async def test_a_turn_asks_with_its_session_and_eight(
    somabrain: SomaBrainServer, somabrain_store: SomaBrainStore
) -> None:
    await somabrain_store.remember("lab", [SAID])
    somabrain.requests.clear()
    context = await built(somabrain, somabrain_store).build_for_turn(TURN, max_prompt_tokens=1_000)
    asked = {"tenant_id": "lab", "session_id": "monday", "query": TURN["user_message"], "top_k": 8}
    assert somabrain.requests[0] == ("/context/evaluate", asked)
    assert "the mooring is forty metres deep" in str(context.messages)
    assert "Bo" in str(context.messages)


async def test_what_is_another_users_stays_out(somabrain: SomaBrainServer, somabrain_store: SomaBrainStore) -> None:
    others = Memory("m-2", "the mooring is a secret of Bo", user_id="bo")
    await somabrain_store.remember("lab", [SAID, others])
    context = await built(somabrain, somabrain_store).build_for_turn(TURN, max_prompt_tokens=1_000)
    assert "forty metres" in str(context.messages)
    assert "a secret of Bo" not in str(context.messages)


async def test_a_scope_of_the_session_holds(somabrain: SomaBrainServer, somabrain_store: SomaBrainStore) -> None:
    await somabrain_store.remember("lab", [SAID])
    context = await built(somabrain, somabrain_store, CONTEXT_SCOPE="session").build_for_turn(
        TURN, max_prompt_tokens=1_000
    )
    assert "forty metres" not in str(context.messages)


@pytest.mark.parametrize("lacks", ["/recall", "/context/evaluate"])
async def test_a_server_that_has_one_of_the_two_ways_to_ask_is_read(
    somabrain: SomaBrainServer, somabrain_store: SomaBrainStore, lacks: str
) -> None:
    somabrain.lacking = lacks
    await somabrain_store.remember("lab", [SAID])
    builder = built(somabrain, somabrain_store)
    for _ in range(2):
        context = await builder.build_for_turn(TURN, max_prompt_tokens=1_000)
        assert "forty metres" in str(context.messages)
        assert context.debug["somabrain_state"] == "normal"
    assert [found.memory.id for found in await somabrain_store.search("lab", MemoryQuery("the mooring"))] == ["m-1"]


async def test_the_documented_recall_takes_a_text_and_a_number(
    somabrain: SomaBrainServer, somabrain_store: SomaBrainStore
) -> None:
    client = somabrain_store.somabrain
    await client.recall("the mooring", 3)
    await client.recall("the mooring")
    await client.recall({"query": "the mooring", "top_k": 2, "threshold": 0.5})
    assert [body for _, body in somabrain.requests] == [
        {"query": "the mooring", "top_k": 3},
        {"query": "the mooring", "top_k": 8},
        {"query": "the mooring", "top_k": 2, "threshold": 0.5},
    ]
