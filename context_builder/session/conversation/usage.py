"""Usage totals add up what a session's model calls have cost, by task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from context_builder.costs import NO_USAGE, Usage
from context_builder.session.conversation.tasks import (
    AnalysisTask,
    CompactionTask,
    DomainTask,
    KeywordTask,
    SummaryTask,
)

TASKS: Final = ("keywords", "domains", "summary", "compaction", "embeddings")


def task_of(task: AnalysisTask) -> str:
    """Return the name of the task, one of :data:`TASKS`."""
    match task:
        case KeywordTask():
            return "keywords"
        case DomainTask():
            return "domains"
        case SummaryTask():
            return "summary"
        case CompactionTask():
            return "compaction"


@dataclass(slots=True)
class TaskUsage:
    """Counts calls, tokens and US dollars by list price; ``cached_tokens`` are among the prompt's."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0

    def add(self, usage: Usage) -> None:
        self.calls += usage.calls
        self.prompt_tokens += usage.prompt_tokens
        self.cached_tokens += usage.cached_tokens
        self.completion_tokens += usage.completion_tokens
        self.dollars += usage.dollars

    def wire(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "dollars": round(self.dollars, 9),
        }


class UsageTotals:
    """Adds up usage since the session began, over all of its runs.

    ``unpriced`` names the models whose tokens are counted but not in the dollars, their price being unknown.
    """

    def __init__(self) -> None:
        self.tasks = {task: TaskUsage() for task in TASKS}
        self.unpriced: set[str] = set()
        self._encoded: bytes | None = None

    @property
    def dollars(self) -> float:
        return sum(spent.dollars for spent in self.tasks.values())

    def add(self, task: str, usage: Usage) -> None:
        self.tasks[task].add(usage)
        if usage.unpriced:
            self.unpriced.add(usage.model)
        if usage is not NO_USAGE:
            self._encoded = None

    def wire(self) -> dict[str, Any]:
        """Return the totals as published under ``cost``, with everything :meth:`restore` needs."""
        return {
            "dollars": round(self.dollars, 9),
            "unpriced": sorted(self.unpriced),
            "tasks": {task: spent.wire() for task, spent in self.tasks.items()},
        }

    def encoded(self) -> bytes:
        """Return :meth:`wire` as JSON, which most commits publish unchanged."""
        if self._encoded is None:
            self._encoded = orjson.dumps(self.wire())
        return self._encoded

    def restore(self, fields: Mapping[str, Any]) -> None:
        """Restore what :meth:`wire` gave."""
        self._encoded = None
        self.tasks |= {task: TaskUsage(**spent) for task, spent in fields["tasks"].items()}
        self.unpriced = set(fields["unpriced"])
