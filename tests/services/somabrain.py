"""A server that implements SomaBrain's documented calls, and misbehaves when told to."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.services.app_server import AppServer


class SomaBrainServer(AppServer):
    """SomaBrain, served from a thread. Memories are found by the words they share with the query.

    ``misbehaviour`` holds what the next requests get instead of an answer, one each: a status, ``"hang"`` or
    ``"nonsense"``. ``requests`` are the paths and bodies that came, ``headers`` those of the last.
    """

    def __init__(self) -> None:
        self.memories: dict[str, list[dict[str, Any]]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: dict[str, str] = {}
        self.misbehaviour: list[int | str] = []
        self.lacking = ""
        """The path that there is not."""
        routes = [
            Route("/context/evaluate", self._evaluate, methods=["POST"]),
            Route("/recall", self._evaluate, methods=["POST"]),
            Route("/memory/remember/batch", self._remember, methods=["POST"]),
        ]
        super().__init__(Starlette(routes=routes))

    async def _evaluate(self, request: Request) -> Response:
        body = await request.json()
        if (response := await self._misbehaved(request, body)) is not None:
            return response
        asked = set(body["query"].lower().split())
        found = []
        for number, memory in enumerate(self.memories.get(body.get("tenant_id", ""), []), 1):
            shared = asked & set(memory["text"].lower().split())
            score = round(len(shared) / max(len(asked), 1), 2)
            if shared and score >= body.get("threshold", 0.0):
                found.append(
                    {"id": f"mem-{number:03}", "score": score, "text": memory["text"], "metadata": memory["metadata"]}
                )
        found.sort(key=lambda candidate: -candidate["score"])
        return JSONResponse({"candidates": found[: body["top_k"]]})

    async def _remember(self, request: Request) -> Response:
        body = await request.json()
        if (response := await self._misbehaved(request, body)) is not None:
            return response
        self.memories.setdefault(body["tenant_id"], []).extend(body["memories"])
        return JSONResponse({"stored": len(body["memories"])})

    async def _misbehaved(self, request: Request, body: dict[str, Any]) -> Response | None:
        self.requests.append((request.url.path, body))
        if request.url.path == self.lacking:
            return JSONResponse({"detail": "Not Found"}, status_code=404)
        self.headers = dict(request.headers)
        match self.misbehaviour.pop(0) if self.misbehaviour else None:
            case int(status):
                return JSONResponse({"detail": "as told"}, status_code=status)
            case "hang":
                await _hung_up(request)
            case "nonsense":
                return Response("<html>", media_type="text/html")
        return None


async def _hung_up(request: Request) -> None:
    """Returns when the caller has had enough."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
