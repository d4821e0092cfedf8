"""What the analyst is told: where the model is, what to ask it for, how patient to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks OpenAI's API; OpenAI itself without a ``base_url``, which ``setting`` names."""

    api_key: str = field(default="", repr=False)
    base_url: str | None = field(default=None, repr=False)
    setting: str = "OPENAI_BASE_URL"

    @property
    def label(self) -> str:
        """What people call it, free of credentials."""
        if self.base_url is None:
            return "OpenAI"
        parts = urlsplit(self.base_url)
        return f"the model server at {parts.netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How one task is asked for; ``max_tokens`` bounds a reply (of keywords: for each message)."""

    model: str
    temperature: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks, with the documented defaults.

    One call for a summary is given at most ``summary_input`` tokens of messages and known points.
    """

    keywords: TaskOptions = TaskOptions("gpt-4o-mini", 0.2, 100)
    domains: TaskOptions = TaskOptions("gpt-4o-mini", 0.2, 400)
    summary: TaskOptions = TaskOptions("gpt-4o", 0.3, 1000)
    summary_input: int = 12_000
    preferences: TaskOptions = TaskOptions("gpt-4o-mini", 0.2, 400)
