"""Capabilities of a server's API are learnt from its refusals.

Servers that speak OpenAI's API speak different parts of it: some take no JSON schema, some know
only the older name of the reply limit, some models allow no temperature. The first refusal is
remembered, so that it happens once for each model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from context_builder.analysis.openai.schemas import Reply, schema_of
from context_builder.analysis.options import TaskOptions
from context_builder.analysis.prompts import Prompt

REFUSAL_STATUSES: Final = frozenset({400, 422, 500, 501})
"""Statuses with which servers are known to refuse a parameter."""

_TRACES: Final[Mapping[str, tuple[str, ...]]] = {
    "max_completion_tokens": ("max_completion_tokens",),
    "temperature": ("temperature",),
    "json_schema": ("response_format", "json_schema", "json schema", "structured output", "grammar"),
}
"""Words of a refusal that tell which part of the API it is about, the most telling first."""


@dataclass(frozen=True, slots=True)
class Question:
    """Holds the messages to send to a model, and the form and limits of its reply."""

    task: str
    stable: str
    varying: str
    reply: type[Reply]
    options: TaskOptions
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Tells which parts of the API may be used; ``schema_in_prompt`` puts the schema into the prompt."""

    max_completion_tokens: bool = True
    temperature: bool = True
    json_schema: bool = True
    schema_in_prompt: bool = False

    def refused_part(self, refusal: str) -> str | None:
        """Return the part in use that a server's refusal is about, if the refusal names one."""
        words = refusal.casefold()
        for part, traces in _TRACES.items():
            if getattr(self, part) and any(trace in words for trace in traces):
                return part
        return None

    def without(self, part: str) -> Capabilities:
        if part == "json_schema":
            return replace(self, json_schema=False, schema_in_prompt=True)
        return replace(self, **{part: False})

    def request(self, question: Question, json_mode: Prompt) -> dict[str, Any]:
        """Return the arguments of a chat completion that asks ``question``."""
        schema = schema_of(question.reply)
        schema_text = f"\n\n{json_mode.fill(schema=json.dumps(schema))}" if self.schema_in_prompt else ""
        strict = {"name": question.task, "strict": True, "schema": schema}
        return {
            "model": question.options.model,
            "messages": [
                {"role": "system", "content": question.stable + schema_text},
                {"role": "user", "content": question.varying},
            ],
            "response_format": {"type": "json_schema", "json_schema": strict}
            if self.json_schema
            else {"type": "json_object"},
            "max_completion_tokens" if self.max_completion_tokens else "max_tokens": question.max_tokens,
            **({"temperature": question.options.temperature} if self.temperature else {}),
        }
