"""Whatever an embedding server sends, it is embeddings of what was asked for or none at all."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse, Response, StreamingResponse

from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions
from tests.services.model_answers import embedding_of
from tests.services.model_server import ModelServer

TEXTS = ["The helicase unwinds", "the double helix"]
GOOD = [{"index": place, "embedding": embedding_of(text)} for place, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def served() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
async def embedder(served: ModelServer) -> AsyncIterator[OpenAIEmbedder]:
    served.model.reset()
    embedder = OpenAIEmbedder(EmbeddingOptions("e5", served.base_url, retries=0, timeout=2))
    yield embedder
    await embedder.close()


async def test_embeddings_come_in_the_order_of_the_texts(embedder: OpenAIEmbedder, served: ModelServer) -> None:
    served.model.distorted = lambda body: {**body, "data": body["data"][::-1], "usage": {"prompt_tokens": -1}}
    assert await embedder.embed(TEXTS) == [entry["embedding"] for entry in GOOD]


def packed(figures: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(figures)}f", *figures)).decode()


@pytest.mark.parametrize(
    "data",
    [
        [{"embedding": one["embedding"]} for one in GOOD],
        [{**one, "embedding": packed(one["embedding"])} for one in GOOD],
        [{**one, "embedding": [one["embedding"]]} for one in GOOD],
    ],
    ids=["without places", "in Base64", "in a list"],
)
async def test_embeddings_in_forms_of_other_servers(
    embedder: OpenAIEmbedder, served: ModelServer, data: object
) -> None:
    served.model.distorted = lambda body: {**body, "data": data}
    assert await embedder.embed(TEXTS) == [pytest.approx(one["embedding"]) for one in GOOD]


def refusing(status: int, body: object, most: int, longest: int = 10**6) -> Callable[[Sequence[str]], Response | None]:
    """Refuses more than so many texts, or longer ones."""
    return lambda texts: JSONResponse(body, status) if len(texts) > most or max(map(len, texts)) > longest else None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "Value error, batch size is invalid, it should not be larger than 10.: input"}}),
        (422, {"error": "batch size 30 > maximum allowed batch size 10", "error_type": "Validation"}),
        (413, {"code": 20042, "message": "input batch size 30 > maximum allowed batch size 10", "data": None}),
        (400, {"error": {"message": "Too many inputs. The max number of inputs is 10.", "code": "InvalidRequest"}}),
    ],
    ids=["DashScope", "TEI", "SiliconFlow", "Azure"],
)
async def test_how_many_texts_a_server_takes_at_once_is_learnt(
    embedder: OpenAIEmbedder, served: ModelServer, status: int, body: object
) -> None:
    served.model.refuses_texts = refusing(status, body, 10)
    texts = [f"text {n}" for n in range(30)]
    for _ in range(2):
        assert await embedder.embed(texts) == [embedding_of(text) for text in texts]
    assert [len(asked["input"]) for asked in served.model.requests] == [30, 10, 10, 10, 10, 10, 10]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, {"error": {"code": 500, "message": "input is too large to process. increase the physical batch size"}}),
        (400, {"message": "This model's maximum context length is 512 tokens. However, you requested 1451 tokens."}),
        (413, {"error": "Input validation error: `inputs` must have less than 512 tokens. Given: 1451"}),
    ],
    ids=["llama.cpp", "vLLM", "TEI"],
)
async def test_a_text_too_long_for_the_model_is_embedded_by_its_beginning(
    embedder: OpenAIEmbedder, served: ModelServer, status: int, body: object
) -> None:
    served.model.refuses_texts = refusing(status, body, 64, longest=2_000)
    long = "words " * 1_000
    assert await embedder.embed([*TEXTS, long]) == [*(one["embedding"] for one in GOOD), embedding_of(long[:1_500])]


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, {"error": "'input_type' parameter is required for asymmetric models"}, "set EMBEDDING_INPUT_TYPES=true"),
        (404, {"error": {"message": 'model "e5" not found, try pulling it first'}}, "does not know e5"),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, "billing"),
        (200, {"error": {"message": "Insufficient credits", "code": 402}}, "billing"),
    ],
)
async def test_what_to_set_is_told(
    embedder: OpenAIEmbedder, served: ModelServer, status: int, body: object, told: str
) -> None:
    served.model.refuses_texts = lambda _: JSONResponse(body, status)
    with pytest.raises(DatabaseError, match=told):
        await embedder.embed(TEXTS)


_NO_MEMORY = {"error": "CUDA out of memory. Tried to allocate 20.00 MiB", "error_type": "backend"}


async def test_texts_for_which_a_server_has_too_little_memory_are_asked_for_in_smaller_requests(
    embedder: OpenAIEmbedder, served: ModelServer
) -> None:
    served.model.refuses_texts = refusing(500, _NO_MEMORY, 1, longest=2_000)
    long = "words " * 1_000
    assert await embedder.embed([*TEXTS, long]) == [*(one["embedding"] for one in GOOD), embedding_of(long[:1_500])]


async def test_a_server_without_any_memory_is_waited_for(embedder: OpenAIEmbedder, served: ModelServer) -> None:
    served.model.refuses_texts = refusing(500, _NO_MEMORY, 0)
    with pytest.raises(DatabaseUnavailable, match="too little memory") as raised:
        await embedder.embed(TEXTS)
    assert type(raised.value) is DatabaseUnavailable, "no text is given up"


ODD = [[], [1.0], [0.0] * 9, [math.nan] * 9, [math.inf] * 9, [1e300] * 9, [10**400] * 9, ["x"] * 9, "x", None]


@pytest.mark.parametrize(
    "data",
    [None, [], {}, "text", [None], GOOD[:1], [GOOD[0], GOOD[0]], [*GOOD, {**GOOD[1], "index": 2}],
     [GOOD[0], {**GOOD[1], "index": 10**23}], [GOOD[0], {**GOOD[1], "index": None}], [GOOD[0], {"index": 1}],
     *([GOOD[0], {"index": 1, "embedding": odd}] for odd in ODD)],
    ids=lambda data: repr(data)[-60:],
)  # fmt: skip
async def test_what_is_no_embedding_of_each_text_is_none(
    embedder: OpenAIEmbedder, served: ModelServer, data: object
) -> None:
    served.model.distorted = lambda body: {**body, "data": data}
    with pytest.raises(DatabaseUnavailable, match=r"^127\.0\.0\.1:\d+ answers with "):
        await embedder.embed(TEXTS)


BODIES = {
    "nothing": b"",
    "null": b"null",
    "nested too deeply": b'{"data": ' + b"[" * 100_000,
    "no Unicode": b'{"data": "\xff"}',
    "endless": b'{"data": "' + b"x" * 50_000_000 + b'"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    ("status", "error"), [(200, DatabaseUnavailable), (400, DatabaseRejected), (500, DatabaseUnavailable)]
)
async def test_a_body_that_is_no_answer_is_a_failure(
    embedder: OpenAIEmbedder, served: ModelServer, body: bytes, status: int, error: type[DatabaseError]
) -> None:
    served.model.verbatim.append(Response(body, status, media_type="application/json"))
    with pytest.raises(error) as raised:
        await embedder.embed(TEXTS)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("code", [["a"], {"a": 1}, 10**23, "x" * 100_000], ids=lambda code: repr(code)[:20])
async def test_an_error_in_another_form_is_an_error_like_others(
    embedder: OpenAIEmbedder, served: ModelServer, code: object
) -> None:
    served.model.verbatim.append(Response(json.dumps({"error": {"code": code}}), 400, media_type="application/json"))
    with pytest.raises(DatabaseRejected, match=r"answers with status 400$"):
        await embedder.embed(TEXTS)


async def test_an_answer_that_never_ends_is_given_up_on_in_time(served: ModelServer) -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    served.model.reset()
    served.model.verbatim.append(StreamingResponse(drip(), media_type="application/json"))
    embedder = OpenAIEmbedder(EmbeddingOptions("e5", served.base_url, retries=0, timeout=0.2))
    async with asyncio.timeout(5):
        with pytest.raises(DatabaseUnavailable, match="APITimeoutError"):
            await embedder.embed(TEXTS)
    await embedder.close()


async def test_a_key_that_no_header_can_hold_is_refused(served: ModelServer) -> None:
    embedder = OpenAIEmbedder(EmbeddingOptions("e5", served.base_url, api_key="sk-…"))
    with pytest.raises(DatabaseUnavailable, match="cannot be asked: UnicodeEncodeError"):
        await embedder.embed(TEXTS)
    await embedder.close()


_leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(10**400)
_values = st.recursive(_leaves, lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=9), inner))


@pytest.fixture(scope="module")
def ask(served: ModelServer) -> Iterator[Any]:
    embedder = OpenAIEmbedder(EmbeddingOptions("e5", served.base_url, retries=0))
    with asyncio.Runner() as runner:
        yield lambda: runner.run(embedder.embed(TEXTS))
        runner.run(embedder.close())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from([(), ("data",), ("data", 1), ("data", 1, "index"), ("data", 1, "embedding")]), value=_values
)
def test_whatever_stands_in_place_of_any_part_of_an_answer(
    ask: Any, served: ModelServer, place: tuple[Any, ...], value: object
) -> None:
    def distorted(node: Any, path: tuple[Any, ...] = place) -> Any:
        if not path:
            return value
        changed = node.copy()
        changed[path[0]] = distorted(node[path[0]], path[1:])
        return changed

    served.model.distorted = distorted
    try:
        embeddings = ask()
    except DatabaseUnavailable:
        return
    assert [len(embedding) for embedding in embeddings] == [9, 9]
    assert all(math.isfinite(figure) for embedding in embeddings for figure in embedding)
