"""A model whose summaries name every message they were made of: ``python -m scripts.campaign.model --port 9000``.

Thereby the daemon's rolling summary is the exact record of what was summarized. It misbehaves like
any other: ``POST /faults`` as in ``tests.services.model_server``, and in the two ways of ``MISCHIEF``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from context_builder.analysis.analyst import MAX_QUOTES
from context_builder.analysis.openai.schemas import MAX_POINTS
from context_builder.engines.engine import LOOPBACK
from scripts.campaign.tokens import tokens_in
from tests.services.model_answers import KNOWN, said_in, task_of
from tests.services.model_server import FakeModel

TOKENS_A_POINT = 25
"""So that a point is not too long for a sentence."""

ABSURD_FIGURES: Final = "absurd-figures"
REFUSALS_AS_POINTS: Final = "refusals-as-points"
MISCHIEF: Final = (ABSURD_FIGURES, REFUSALS_AS_POINTS)
"""A sound answer that says impossible things of what it cost; an answer in form that is a refusal, and takes the place
of what is known."""

_FIGURES: Final[Sequence[Any]] = (
    -1,
    0,
    2**31,
    2**53,
    2**63,
    10**23,
    1e300,
    math.nan,
    math.inf,
    True,
    "7",
    None,
    [],
    {},
)
_USAGES: Final[Sequence[Any]] = (
    *({"prompt_tokens": figure, "completion_tokens": figure, "total_tokens": figure} for figure in _FIGURES),
    *({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": figure}} for figure in _FIGURES),
    *(None, "many", [], [1, 2], -1, {}),
)

_REFUSALS: Final = (
    "Unfortunately, I cannot summarize this conversation.",
    "As a language model, I have no opinion on that.",
    "502 Bad Gateway",
    "There is nothing to summarize.",
    "upstream connect error or disconnect/reset before headers",
    "Il m'est impossible de résumer cette conversation.",
    "Dabei kann ich leider nicht behilflich sein.",
    "Lo siento, no puedo ayudar con eso.",
    "Non posso aiutarti con questa richiesta.",
    "Não consigo ajudar com esse pedido.",
    "К сожалению, я не могу с этим помочь.",
    "申し訳ありませんが、お手伝いできません。",
    "很抱歉，我无法提供帮助。",
    "عذرًا، لا يمكنني المساعدة في ذلك.",
    "Üzgünüm, bu konuda yardımcı olamam.",
)


class NamingModel(FakeModel):
    """Answers a summary request with the tokens of all its messages, some at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._mischief: str | None = None
        self._usages = itertools.cycle(_USAGES)

    async def set_faults(self, request: Request) -> Response:
        asked = json.loads(await request.body())
        self._mischief = asked["fault"] if asked.get("fault") in MISCHIEF else None
        if self._mischief is None:
            return await super().set_faults(request)
        self.fault = None
        return JSONResponse({"fault": self._mischief})

    async def _answer(self, asked: dict[str, Any], request: Request) -> Response:
        self.requests.clear()
        reply = _naming
        if self._mischief == REFUSALS_AS_POINTS:
            reply = _refusing
        match task_of(asked):
            case "summary":
                self.replies = deque([reply(said_in(asked))])
            case "verification":
                self.replies = deque([_verdicts(asked["messages"][-1]["content"])])
            case _:
                self.replies = deque()
        return await super()._answer(asked, request)

    def _sent(self, body: dict[str, Any]) -> Response:
        if self._mischief == ABSURD_FIGURES:
            body["usage"] = next(self._usages)
        return super()._sent(body)


def _naming(texts: Sequence[str]) -> Mapping[str, Any]:
    """Name the tokens in order, as many in a point as it has quotes, or more if the points would not be enough."""
    named = [(token, place) for place, text in enumerate(texts, start=1) for token in tokens_in(text)]
    size = min(max(MAX_QUOTES, -(-len(named) // MAX_POINTS)), TOKENS_A_POINT)
    points = []
    for some in (named[start : start + size] for start in range(0, len(named), size)):
        said = dict[int, list[str]]()
        for token, place in some:
            if place in said or len(said) < MAX_QUOTES:
                said.setdefault(place, []).append(token)
        points.append(_point(" ".join(token for token, _ in some), said))
    return {"chatter": not points, "points": points}


def _verdicts(prompt: str) -> Mapping[str, Any]:
    """Support what names a token: a refusal is in no quote."""
    sentences = (match.groups() for match in KNOWN.finditer(prompt))
    return {"verdicts": [{"number": int(number), "supported": bool(tokens_in(text))} for number, _, text in sentences]}


def _refusing(texts: Sequence[str]) -> Mapping[str, Any]:
    """Refuse, in words that nobody said: what somebody said is a point like any other."""
    cited, said = range(1, len(texts) + 1), "\n".join(texts)
    points = [
        _point(text, {place: texts[place - 1].split()[1:4]}, replaces=place)
        for text, place in zip((text for text in _REFUSALS if text not in said), cited, strict=False)
    ]
    return {"chatter": False, "points": points}


def _point(text: str, said: Mapping[int, Sequence[str]], *, replaces: int = 0) -> Mapping[str, Any]:
    evidence = [f"{place}: {' … '.join(words)}" for place, words in said.items()]
    return {"evidence": evidence, "text": text, "by": [], "kind": "claim", "replaces": replaces}


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="A model that names the messages it summarizes.")
    parser.add_argument("--port", type=int, required=True)
    model = NamingModel()
    model.retry_after = "1"
    uvicorn.run(model.app(), host=LOOPBACK, port=parser.parse_args().port, log_level="critical", lifespan="off")


if __name__ == "__main__":
    main()
