"""An OpenAI-compatible server that answers by rule, at a chosen latency, and misbehaves on command.

In a test, ``with ModelServer() as server`` and ``server.base_url``; what it was asked is in
``server.model.requests``, and a fault is set by ``server.model.fault = Fault.HANG`` or for the next
requests by ``server.model.script.extend([...])``.

As a command, for benchmarks: ``python -m tests.services.model_server --port 9000 --latency-ms
keywords=150,domains=400,summary=1500``. There, ``POST /faults`` takes ``{"fault": "hang"}`` (null
ends it) or ``{"script": ["error-500", "hang"]}``, and ``GET /stats`` tells how often it was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.services.app_server import AppServer, config_of
from tests.services.model_answers import TASKS, answer, embedding_of, task_of


class Fault(StrEnum):
    """What may go wrong with a request."""

    ERROR_500 = "error-500"
    RATE_LIMIT = "rate-limit"
    NO_QUOTA = "no-quota"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN_MODEL = "unknown-model"
    TOO_LONG = "too-long"
    HANG = "hang"
    DROP = "drop"
    NO_COMPLETION = "no-completion"
    TRUNCATED_BODY = "truncated-body"
    TRUNCATED_JSON = "truncated-json"
    CUT_OFF = "cut-off"
    WRONG_SHAPE = "wrong-shape"
    EMPTY = "empty"
    REFUSAL = "refusal"
    APOLOGY = "apology"
    NONE = "none"


UNANSWERED = (Fault.ERROR_500, Fault.RATE_LIMIT, Fault.DROP)
"""Faults that pass, and leave a request without an answer."""

WRONG_ANSWERS = (
    Fault.NO_COMPLETION,
    Fault.TRUNCATED_BODY,
    Fault.TRUNCATED_JSON,
    Fault.CUT_OFF,
    Fault.WRONG_SHAPE,
    Fault.EMPTY,
    Fault.REFUSAL,
    Fault.APOLOGY,
    Fault.NONE,
)
"""Faults that pass, with an answer of no use."""

_ERRORS: Mapping[Fault, tuple[int, str, str]] = {
    Fault.ERROR_500: (500, "server_error", "The server had an error"),
    Fault.RATE_LIMIT: (429, "rate_limit_exceeded", "Rate limit reached"),
    Fault.NO_QUOTA: (429, "insufficient_quota", "You exceeded your current quota"),
    Fault.UNAUTHORIZED: (401, "invalid_api_key", "Incorrect API key provided: sk-secret"),
    Fault.UNKNOWN_MODEL: (404, "model_not_found", "The model does not exist"),
    Fault.TOO_LONG: (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens"),
}


class FakeModel:
    """The model behind the server: what it answers, after how long, and what goes wrong.

    ``latency`` is in seconds for each task; ``refuses`` names request parameters that it takes for
    errors (``json_schema``, ``max_completion_tokens``, ``temperature``); ``replies`` are contents
    that replace its own answers, one a request. ``verbatim`` are whole responses, sent as they are, and ``distorted``
    changes the body of each answer: to bytes, or to what is sent as JSON. ``oddly`` is given each request and the
    content of its answer, and returns another response, if any; so does ``refuses_texts``, given those to embed.
    ``heard`` is called with each request.
    """

    def __init__(self, latency: Mapping[str, float] | None = None) -> None:
        self.in_flight = 0
        self.reset(latency)

    def reset(self, latency: Mapping[str, float] | None = None) -> None:
        """Behave from now on, and forget what was asked."""
        self.latency = dict(latency or {})
        self.refuses: set[str] = set()
        self.ignores_schema = False
        self.fault: Fault | None = None
        self.script: deque[Fault | None] = deque()
        self.replies: deque[object] = deque()
        self.verbatim: deque[Response] = deque()
        self.distorted: Callable[[dict[str, Any]], object] = lambda body: body
        self.oddly: Callable[[dict[str, Any], str], Response | None] = lambda asked, content: None
        self.refuses_texts: Callable[[Sequence[str]], Response | None] = lambda texts: None
        self.heard: Callable[[Request], None] = lambda request: None
        self.retry_after = "0.01"
        self.requests: list[dict[str, Any]] = []
        self.tasks: Counter[str] = Counter()
        self.most_in_flight = 0

    async def complete(self, request: Request) -> Response:
        """Answer a chat completion request."""
        asked = json.loads(await request.body())
        self.requests.append(asked)
        self.heard(request)
        task = task_of(asked)
        self.tasks[task] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency.get(task, 0.0))
            return self.verbatim.popleft() if self.verbatim else await self._answer(asked, request)
        finally:
            self.in_flight -= 1

    async def embed(self, request: Request) -> Response:
        """Answer a request for embeddings."""
        asked = json.loads(await request.body())
        self.requests.append(asked)
        if self.verbatim:
            return self.verbatim.popleft()
        if (refusal := self.refuses_texts(asked["input"])) is not None:
            return refusal
        data = [{"index": place, "embedding": embedding_of(text)} for place, text in enumerate(asked["input"])]
        return self._sent({"object": "list", "model": asked["model"], "data": data})

    def _sent(self, body: dict[str, Any]) -> Response:
        distorted = self.distorted(body)
        content = distorted if isinstance(distorted, bytes) else json.dumps(distorted)
        return Response(content, media_type="application/json")

    async def _answer(self, asked: dict[str, Any], request: Request) -> Response:
        if refused := self._refused(asked):
            return _error(400, "unsupported_parameter", f"Unsupported parameter: '{refused}' is not supported")
        fault = self.script.popleft() if self.script else self.fault
        if fault is not None and fault in _ERRORS:
            headers = {"Retry-After": self.retry_after} if fault is Fault.RATE_LIMIT else {}
            return _error(*_ERRORS[fault], headers)
        match fault:
            case Fault.HANG:
                await request.receive()  # comes when the client has hung up
                return Response(status_code=499)
            case Fault.DROP:
                return _Dropped()
            case Fault.NO_COMPLETION:
                return PlainTextResponse("<html>It works!</html>", media_type="text/html")
            case Fault.TRUNCATED_BODY:
                return Response('{"choices": [{"mess', media_type="application/json")
        content = self.replies.popleft() if self.replies else answer(asked)
        if (odd := self.oddly(asked, content if isinstance(content, str) else json.dumps(content))) is not None:
            return odd
        return self._sent(_completion(asked, content, fault, fenced=self.ignores_schema))

    def _refused(self, asked: dict[str, Any]) -> str | None:
        for parameter in self.refuses - {"json_schema"}:
            if parameter in asked:
                return parameter
        is_schema = asked.get("response_format", {}).get("type") == "json_schema"
        return "response_format.json_schema" if is_schema and "json_schema" in self.refuses else None

    async def set_faults(self, request: Request) -> Response:
        """Take faults over HTTP, from a program that runs the server as a process."""
        wanted = json.loads(await request.body())
        self.fault = Fault(wanted["fault"]) if wanted.get("fault") else None
        self.script = deque(Fault(name) if name else None for name in wanted.get("script", ()))
        return JSONResponse({"fault": self.fault, "script": list(self.script)})

    async def stats(self, request: Request) -> Response:
        """How often it was asked, by task."""
        return JSONResponse(
            {"requests": len(self.requests), "tasks": self.tasks, "most_in_flight": self.most_in_flight}
        )

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self.complete, methods=["POST"]),
                Route("/v1/embeddings", self.embed, methods=["POST"]),
                Route("/faults", self.set_faults, methods=["POST"]),
                Route("/stats", self.stats),
            ]
        )


class _Dropped(Response):
    """Promises a body and sends none, so that the connection is closed in the middle of the answer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"100")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


def _completion(asked: dict[str, Any], content: object, fault: Fault | None, *, fenced: bool) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content)
    if fenced:
        has_schema = "Reply with one JSON object" in asked["messages"][0]["content"]
        text = f"Here you are:\n```json\n{text}\n```" if has_schema else "Certainly! DNA and such."
    contents = {
        Fault.TRUNCATED_JSON: text[: len(text) // 2],
        Fault.CUT_OFF: text[:20],
        Fault.WRONG_SHAPE: '{"result": [1, 2, 3]}',
        Fault.EMPTY: "",
        Fault.APOLOGY: "I'm sorry, but I can't help with that.",
        Fault.NONE: "NONE",
    }
    message: dict[str, Any] = {"role": "assistant", "content": contents.get(fault, text) if fault else text}
    if fault is Fault.REFUSAL:
        message = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
    *systems, varying = (len(part["content"]) // 4 for part in asked["messages"])
    stable = sum(systems)
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 0,
        "model": asked["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "length" if fault is Fault.CUT_OFF else "stop"}],
        "usage": {
            "prompt_tokens": stable + varying,
            "completion_tokens": len(text) // 4,
            "total_tokens": stable + varying + len(text) // 4,
            "prompt_tokens_details": {"cached_tokens": stable},
        },
    }


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    body = {"error": {"message": message, "type": "error", "code": code, "param": None}}
    return JSONResponse(body, status_code=status, headers=headers)


class ModelServer(AppServer):
    """The fake model, served from a thread."""

    def __init__(self, latency: Mapping[str, float] | None = None) -> None:
        self.model = FakeModel(latency)
        super().__init__(self.model.app())

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"


def _latencies(text: str) -> dict[str, float]:
    """Seconds by task, of ``150`` or ``keywords=150,domains=400`` in milliseconds."""
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {name: float(ms) / 1000 for task, _, ms in pairs for name in ([task] if task else TASKS)}


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake model server that speaks OpenAI's API.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--latency-ms", type=_latencies, default={}, help="150, or keywords=150,domains=400,summary=1500"
    )
    options = parser.parse_args()
    uvicorn.Server(config_of(FakeModel(options.latency_ms).app(), options.port)).run()


if __name__ == "__main__":
    main()
