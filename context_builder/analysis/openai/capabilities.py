"""Capabilities of a server's API are learnt from its refusals.

Servers that speak OpenAI's API speak different parts of it: some take no JSON schema, some know
only the older name of the reply limit, some models allow no temperature. The first refusal is
remembered, so that it happens once for each model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from context_builder.analysis.openai.completion import MOST_TOKENS
from context_builder.analysis.openai.refusals import ServerError
from context_builder.analysis.openai.schemas import Reply, schema_of
from context_builder.analysis.options import TaskOptions
from context_builder.analysis.prompts import Prompt

_REFUSAL_STATUSES: Final = frozenset({400, 404, 405, 406, 415, 422, 500, 501})
"""Statuses with which servers are known to refuse a parameter."""

_UNPAID: Final = 402

_TRACES: Final[Mapping[str, str]] = {
    "reasoning_effort": r"reasoning|effort",
    "stream_options": r"stream_options",
    "max_completion_tokens": r"max_completion_tokens",
    "temperature": r"temperature",
    "whole_answer": r"(?<!up)stream",
    "system_role": r"system role|role\W{1,4}system|role.{0,40}does not support\W{1,4}system|roles must alternate"
    r"|system (?:messages?|prompts?|instructions?|roles?) (?:is|are) not|only (?:supports? )?user and assistant",
    "json_schema": r"response_format|schema|structured.?output|grammar|guided|json.?(?:mode|object)|too many states"
    r"|requested parameters",
}
"""What in a refusal tells which part of the API it is about, the most telling first."""

_WINDOW: Final = re.compile(
    r"context (?:length|window|size)(?: is| of)? (?P<window>\d+) tokens"
    r".*?(?:\(|has )(?P<prompt>\d+) (?:in the messages|input tokens)"
    r"|tokens`? \+ `?max_new_tokens`? must be <= (?P<most>\d+)\. given: (?P<given>\d+)",
    re.DOTALL,
)
"""How a server says that its window does not hold the prompt and the reply's limit together."""

_LIMIT: Final = re.compile(r"max_(?:completion_|new_|output_)?tokens|completion tokens|output tokens")
_SMALLEST_LIMIT: Final = 64
_LEAST_ROOM: Final = 256
_ROOM_FOR_THOUGHTS: Final = 2_048
_MOST_ROOM: Final = 32_768
_MOST_GROWTH: Final = 8
_LETTERS: Final = re.compile(r"[^\W\d_\x00-\x7f]")
_FEW_LETTERS: Final = 8


def room_factor(text: str) -> int:
    """Return how much more room the language of ``text`` takes than English, at most: the bytes of its letters.

    No tokenizer takes more than a token a byte, and an English letter takes a quarter: a word of Hindi or Japanese
    takes up to three times as many tokens as an English one.
    """
    letters = [] if text.isascii() else _LETTERS.findall(text)
    return -(-len("".join(letters).encode()) // len(letters)) if len(letters) >= _FEW_LETTERS else 1


Changes = Mapping[str, Any]
"""Fields of :class:`Capabilities` that a server's answer has shown to be otherwise."""


@dataclass(frozen=True, slots=True)
class Question:
    """The messages to send to a model, and the form and limits of its reply."""

    task: str
    stable: str
    varying: str
    reply: type[Reply]
    options: TaskOptions
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Which parts of the API may be used, and how.

    ``schema_in_prompt`` puts the schema into the prompt. ``whole_answer`` is an answer that is not streamed.
    ``tried_max_tokens`` tells that the limit was called so because a reply was cut off far below it.
    ``thinks_less`` asks a model for less effort, since its thoughts used up a limit, and ``thoughts`` are the tokens
    that they are given from then on. ``growth`` multiplies the limits of tasks, and ``most_tokens`` is the largest
    limit that the server takes. ``room`` is what its window leaves for the reply to this one request.
    """

    max_completion_tokens: bool = True
    tried_max_tokens: bool = False
    temperature: bool = True
    json_schema: bool = True
    json_object: bool = True
    schema_in_prompt: bool = False
    whole_answer: bool = True
    stream_options: bool = True
    reasoning_effort: bool = True
    thinks_less: bool = False
    thoughts: int = 0
    growth: Mapping[str, int] = field(default_factory=dict)
    most_tokens: int = MOST_TOKENS
    system_role: bool = True
    room: int = MOST_TOKENS

    def after(self, error: ServerError, question: Question, *, was_answered: bool) -> Changes | None:
        """Return what to do differently after a refusal, if it names what.

        One that says nothing of use may be about anything, unless such a request ``was_answered`` before.
        """
        if (room := self._room_left(error, question)) is not None:
            return {"room": room}
        if error.is_cut_off:
            return self.after_cut(question.task, in_thoughts=True)
        if error.status == _UNPAID and (fewer := self._smaller_limit(error.text, question)) is not None:
            return {"room": fewer}  # as long as there are no more credits
        if error.is_about_content or error.is_invalid_json or error.status not in _REFUSAL_STATUSES:
            return None
        if (fewer := self._smaller_limit(error.text, question)) is not None:
            return {"most_tokens": fewer}
        if self.tried_max_tokens and not self.max_completion_tokens and "max_tokens" in error.text:
            return {"max_completion_tokens": True}
        if (part := self.refused_part(error.text)) is not None:
            return self.without(part)
        return self._simpler() if error.is_unexplained and not was_answered else None

    def refused_part(self, refusal: str) -> str | None:
        """Return the part in use that a server's refusal is about, if the refusal names one."""
        words = refusal.casefold()
        return next((part for part in _TRACES if self._uses(part) and re.search(_TRACES[part], words)), None)

    def without(self, part: str) -> Changes:
        if part != "json_schema":
            return {part: False}
        return {"json_schema" if self.json_schema else "json_object": False, "schema_in_prompt": True}

    def after_cut(self, task: str, *, in_thoughts: bool) -> Changes | None:
        """Return how to give a reply of the task more room next time, in steps of four or two, up to a bound."""
        if in_thoughts:
            room = max(_ROOM_FOR_THOUGHTS, 4 * self.thoughts)
            return {"thinks_less": True, "thoughts": room} if room <= _MOST_ROOM else None
        growth = 2 * self.growth.get(task, 1)
        return {"growth": {**self.growth, task: growth}} if growth <= _MOST_GROWTH else None

    def after_early_cut(self, question: Question, tokens: int | None) -> Changes | None:
        """Return the limit's older name after a reply that was cut off far below it, once; its newer one where that
        was no better.
        """
        if not tokens or tokens >= self.limit(question) / 2:
            return None
        if not self.tried_max_tokens:
            return {"max_completion_tokens": False, "tried_max_tokens": True} if self.max_completion_tokens else None
        return None if self.max_completion_tokens else {"max_completion_tokens": True}

    def limit(self, question: Question) -> int:
        """Return the limit of the reply, in tokens."""
        limit = question.max_tokens * room_factor(question.varying) * self.growth.get(question.task, 1)
        return min(limit + self.thoughts, self.most_tokens, self.room)

    @property
    def notes(self) -> list[str]:
        """Return in what the server is met half-way, for people."""
        form = "" if self.json_schema else "JSON without a schema" if self.json_object else "no response_format"
        return [
            note
            for note, holds in {
                f"it takes {form}: the schema is put into the prompt": form,
                "it knows max_tokens only": not self.max_completion_tokens,
                "it takes no temperature": not self.temperature,
                "it takes no system message: what it would say begins the user's": not self.system_role,
                "it only streams": not self.whole_answer,
                f"its thoughts take more than the limit: {self.thoughts} tokens are added": self.thoughts,
                f"replies are given {max(self.growth.values(), default=1)} times the limit": self.growth,
                f"it takes limits of {self.most_tokens} tokens at most": self.most_tokens < MOST_TOKENS,
            }.items()
            if holds
        ]

    def request(self, question: Question, json_mode: Prompt) -> dict[str, Any]:
        """Return the arguments of a chat completion that asks ``question``."""
        schema = schema_of(question.reply)
        schema_text = f"\n\n{json_mode.fill(schema=json.dumps(schema))}" if self.schema_in_prompt else ""
        strict = {"name": question.task, "strict": True, "schema": schema}
        stable = question.stable + schema_text
        both = [{"role": "system", "content": stable}, {"role": "user", "content": question.varying}]
        one = [{"role": "user", "content": f"{stable}\n\n{question.varying}"}]
        request: dict[str, Any] = {
            "model": question.options.model,
            "messages": both if self.system_role else one,
            "max_completion_tokens" if self.max_completion_tokens else "max_tokens": self.limit(question),
        }
        if self.json_schema:
            request["response_format"] = {"type": "json_schema", "json_schema": strict}
        elif self.json_object:
            request["response_format"] = {"type": "json_object"}
        if self.temperature:
            request["temperature"] = question.options.temperature
        if self._uses("reasoning_effort"):
            request["reasoning_effort"] = "low"
        if not self.whole_answer:
            request["stream"] = True
        if self._uses("stream_options"):
            request["stream_options"] = {"include_usage": True}
        return request

    def _uses(self, part: str) -> bool:
        match part:
            case "reasoning_effort":
                return self.thinks_less and self.reasoning_effort
            case "stream_options":
                return not self.whole_answer and self.stream_options
            case "json_schema":
                return self.json_schema or self.json_object
            case _:
                return bool(getattr(self, part))

    def _room_left(self, error: ServerError, question: Question) -> int | None:
        """Return the tokens that the window has left beside the prompt, where the reply's limit alone is too large."""
        if not error.is_too_long or (found := _WINDOW.search(error.text)) is None:
            return None
        window, prompt = found["window"] or found["most"], found["prompt"] or found["given"]
        room = int(window) - int(prompt)
        return room if _LEAST_ROOM <= room < self.limit(question) else None

    def _smaller_limit(self, refusal: str, question: Question) -> int | None:
        """Return the largest limit that a refusal names, if it finds this one too large."""
        if not _LIMIT.search(refusal):
            return None
        asked = self.limit(question)
        numbers = (int(number) for number in re.findall(r"\b\d{2,7}\b", refusal))
        return max((number for number in numbers if _SMALLEST_LIMIT <= number < asked), default=None)

    def _simpler(self) -> Changes | None:
        """Return what asks for less of the API: no schema, then nothing but what every server takes."""
        if self.json_schema:
            return {"json_schema": False, "schema_in_prompt": True}
        barest = {
            "json_object": False,
            "temperature": False,
            "max_completion_tokens": False,
            "reasoning_effort": False,
            "stream_options": False,
        }
        return None if all(getattr(self, part) is False for part in barest) else barest
