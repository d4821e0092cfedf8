"""Questions to models with their answers, as pairs: logs of requests, data to train with, and histories of web pages.

``{"prompt": …, "completion": …}`` and its like, alone or in lists, and ``[[question, answer], …]`` as Gradio and
text-generation-webui keep them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from context_builder.transcript.fields import Object, inner, optional_text
from context_builder.transcript.formats import turns
from context_builder.transcript.formats.turn import text_of, turn_of
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript

_PAIRS: Final = (
    ("request", "response"),
    ("inputs", "outputs"),
    ("instruction", "output"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("prompt", "chosen"),
    ("question", "answer"),
    ("query", "response"),
    ("input", "output"),
    ("human", "assistant"),
)
"""How programs call what is asked and what is answered."""

_HISTORIES: Final = ("visible", "internal", "history", "data")


_MARKED: Final = re.compile(
    r"<\|(?:im_start\|>|start_header_id\|>)\s*(?P<role>\w{1,20})\s*?(?:<\|end_header_id\|>)?\n\s*"
    r"(?P<text>.*?)(?=<\|(?:im_end|im_start|eot_id|start_header_id)\|>|\Z)",
    re.DOTALL,
)
"""A turn as models are given it: ChatML's and Llama's."""


def is_marked(text: str) -> bool:
    return bool(_MARKED.search(text[:2000]))


def read_marked(source: Source) -> Transcript:
    """Return the transcript in a text with the marks of a model's turns."""
    return turns.read_turns(
        [{"role": one["role"], "content": one["text"]} for one in _MARKED.finditer(source.text)], source
    )


def exchanges_in(document: Any) -> list[Object]:
    """Return the turns of a document that is made of questions and answers; none where it is not."""
    if isinstance(document, dict):
        pair = next((pair for pair in _PAIRS if all(document.get(key) for key in pair)), None)
        if pair is None:
            listed = next((found for key in _HISTORIES if (found := document.get(key)) and _are_pairs(found)), None)
            listed = listed or inner(document, "history").get("visible")
            return exchanges_in(listed) if _are_pairs(listed) else []
        asked, answered = ([*_said(document[key], role)] for key, role in zip(pair, ("user", "assistant"), strict=True))
        if pair == ("instruction", "output") and (more := optional_text(document, "input")):
            asked = [*asked, {"role": "user", "content": more}]
        return [*asked, *answered] if asked and answered else []
    if _are_pairs(document):
        return [turn for asked, said in document for turn in (*_said(asked, "user"), *_said(said, "assistant"))]
    found = [exchanges_in(one) if isinstance(one, dict) else [] for one in document] if _is_list(document) else []
    return [turn for some in found for turn in some] if found and all(found) else []


def _said(value: Any, role: str) -> Iterator[Object]:
    """Yield the turns of a request or an answer: a text, messages, or choices of which the first counts."""
    if isinstance(value, str) and value.strip():
        yield {"role": role, "content": value}
    elif isinstance(value, dict) and _is_list(value.get("choices")):
        for one in value["choices"][:1]:
            yield {"role": role, "content": inner(one, "message").get("content") or inner(one).get("text")}
    elif isinstance(value, dict | list):
        listed = turns.turns_in(value)
        if listed is not None:
            yield from (one for one in listed if isinstance(one, dict))
        elif isinstance(value, dict) and (text := text_of(turn_of(value))):
            yield {"role": role, "content": text}


def _are_pairs(value: Any) -> bool:
    """Return whether a list is of pairs of texts, of which the first ones may lack one."""
    return _is_list(value) and all(
        isinstance(one, list) and len(one) == 2 and all(isinstance(part, str | None) for part in one) for one in value
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)
