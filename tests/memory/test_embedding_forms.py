"""Servers that embed in a form of their own are asked and understood in it."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from pydantic import SecretStr

from context_builder.errors import DatabaseUnavailable
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions

VECTORS = [[0.25, 0.5], [0.5, 0.25]]


class Served(HTTPServer):
    asked: list[tuple[str, dict[str, Any]]]
    answer: object
    refused: tuple[str, ...] = ()


class _Handler(BaseHTTPRequestHandler):
    server: Served

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        is_refused = body.get("encoding_format") in self.server.refused
        refusal = {"detail": "Value of 'encoding_format' is not one of null, 'base64'"}
        answer = json.dumps(refusal if is_refused else self.server.answer).encode()
        self.send_response(400 if is_refused else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served(("127.0.0.1", 0), _Handler)
    server.asked = []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "answer", "asked"),
    [
        (
            "/v2/embed",
            {"embeddings": {"float": VECTORS}, "meta": {"billed_units": {"input_tokens": 3.0}}},
            {"model": "m", "texts": ["a", "b"], "input_type": "search_document", "truncate": "END"},
        ),
        ("/v1/embed", {"embeddings": VECTORS}, {"texts": ["a", "b"], "input_type": "search_document"}),
        ("/embed", VECTORS, {"inputs": ["a", "b"], "truncate": True}),
        ("/api/embed", {"embeddings": VECTORS, "prompt_eval_count": 3}, {"model": "m", "input": ["a", "b"]}),
    ],
)
async def test_a_server_is_asked_in_its_own_form(
    served: Served, path: str, answer: object, asked: dict[str, object]
) -> None:
    served.answer = answer
    url = f"http://127.0.0.1:{served.server_port}{path}"
    embedder = OpenAIEmbedder(EmbeddingOptions("m", url, api_key=SecretStr("k"), retries=0, timeout=2))
    assert await embedder.embed(["a", "b"]) == VECTORS
    assert served.asked[0][0] == path
    assert served.asked[0][1].items() >= asked.items()
    served.answer = {"error": "overloaded"}
    with pytest.raises(DatabaseUnavailable, match="answers with no embeddings"):
        await embedder.embed_query("a")
    assert served.asked[1][1].get("input_type", "search_query") == "search_query"
    await embedder.close()


@pytest.mark.parametrize("refused", [("float",), ("float", "base64")])
async def test_a_server_that_refuses_an_encoding_is_asked_for_another_and_not_again(
    served: Served, refused: tuple[str, ...]
) -> None:
    served.refused = refused
    packed = [base64.b64encode(struct.pack("<2f", *one)).decode() for one in VECTORS]
    served.answer = {"data": [{"index": place, "embedding": one} for place, one in enumerate(packed)]}
    url = f"http://127.0.0.1:{served.server_port}/v1"
    embedder = OpenAIEmbedder(EmbeddingOptions("m", url, api_key=SecretStr("k"), retries=0, timeout=2))
    assert await embedder.embed(["a", "b"]) == VECTORS
    assert await embedder.embed(["a", "b"]) == VECTORS
    asked = [body.get("encoding_format") for _, body in served.asked]
    wanted = "base64" if len(refused) == 1 else None
    assert asked == [*refused, wanted, wanted]
    await embedder.close()
