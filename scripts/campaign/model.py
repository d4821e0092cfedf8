"""A model whose summaries name every message they were made of: ``python -m scripts.campaign.model --port 9000``.

Thereby the daemon's rolling summary is the exact record of what was summarized. It misbehaves like
any other: ``POST /faults`` as in ``tests.services.model_server``.
"""

from __future__ import annotations

import argparse
from collections import deque
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from context_builder.engines.ports import LOOPBACK
from scripts.campaign.tokens import tokens_in
from tests.services.model_answers import said_in, task_of
from tests.services.model_server import FakeModel

TOKENS_A_POINT = 40
"""So that a point stays below the length at which it is clipped."""


class NamingModel(FakeModel):
    """Answers a summary request with the tokens of all its messages, forty a point."""

    async def _answer(self, asked: dict[str, Any], request: Request) -> Response:
        self.requests.clear()
        self.replies = deque([_naming(said_in(asked))] if task_of(asked) == "summary" else [])
        return await super()._answer(asked, request)


def _naming(texts: list[str]) -> dict[str, Any]:
    tokens = [(token, place) for place, text in enumerate(texts, start=1) for token in tokens_in(text)]
    parts = (tokens[start : start + TOKENS_A_POINT] for start in range(0, len(tokens), TOKENS_A_POINT))
    points = [
        {"kind": "claim", "text": " ".join(token for token, _ in part), "cites": [part[0][1]], "replaces": 0}
        for part in parts
    ]
    return {"chatter": not points, "points": points}


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="A model that names the messages it summarizes.")
    parser.add_argument("--port", type=int, required=True)
    model = NamingModel()
    model.retry_after = "1"
    uvicorn.run(model.app(), host=LOOPBACK, port=parser.parse_args().port, log_level="critical", lifespan="off")


if __name__ == "__main__":
    main()
