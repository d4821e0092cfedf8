"""Analysis tasks are a conversation's requests to an analyst, which run beside the loop.

Usage totals add up what they cost. A task is failing when calls for it have come to nothing since its last result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import orjson

from context_builder.analysis.analyst import (
    AnalystMessage,
    CompactionRequest,
    CompactionResult,
    DomainResult,
    KeywordResult,
    SummaryRequest,
    SummaryResult,
)
from context_builder.clock import Instant
from context_builder.costs import NO_USAGE, Usage
from context_builder.session.conversation.usage_history import UsageHistory
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.values import value


@value
class KeywordTask:
    """Asks for the keywords of messages."""

    messages: Sequence[AnalystMessage]


@value
class DomainTask:
    """Asks for the domains of the newest messages, up to the id ``through``; ``new`` of them came since last time.

    ``standing`` is the last result, if there was one, which may be taken again if nothing has changed.
    """

    messages: Sequence[AnalystMessage]
    through: int
    new: int
    standing: DomainResult | None = None


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Tells which messages one summary call takes, in order, and whether they lie in the pending list.

    ``last_resort`` says that they must not wait for a better analyst any longer, ``again`` that they have been
    summarized before: by the last resort, or as they were before they were ``corrected``.
    """

    entries: Sequence[BufferedMessage]
    from_pending: bool = False
    last_resort: bool = False
    again: bool = False
    corrected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask(SummaryPart):
    """Asks for a summary of one part."""

    request: SummaryRequest


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Asks to rewrite the oldest points of the summary as fewer sentences."""

    request: CompactionRequest


AnalysisTask = KeywordTask | DomainTask | SummaryTask | CompactionTask
AnalysisResult = KeywordResult | DomainResult | SummaryResult | CompactionResult


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
        self.history = UsageHistory()
        self._encoded: bytes | None = None

    @property
    def dollars(self) -> float:
        return sum(spent.dollars for spent in self.tasks.values())

    def add(self, task: str, usage: Usage, at: float) -> None:
        """Add what a call of ``task`` used, whose result came at an epoch second."""
        self.tasks[task].add(usage)
        self.history.add(at, usage.prompt_tokens + usage.completion_tokens, usage.dollars)
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
            "history": self.history.wire(),
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
        self.history.restore(fields["history"])


LONGEST_REASON: Final = 300
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class FailingTask:
    """Tells since which epoch second calls for a task fail, how many did, why the latest did, and the tokens spent."""

    since: float
    tries: int
    reason: str
    tokens: int


class FailingTasks:
    """The failing tasks of a conversation by their names, which are those of :data:`TASKS`."""

    def __init__(self) -> None:
        self._tasks: dict[str, FailingTask] = {}

    def failed(self, task: str, now: Instant, reason: str, usage: Usage | None) -> None:
        """Note that a call for the task came to nothing, for ``reason``, and used ``usage`` all the same."""
        before = self._tasks.get(task) or FailingTask(now.wall, 0, "", 0)
        spent = usage.prompt_tokens + usage.completion_tokens if usage is not None else 0
        self._tasks[task] = replace(
            before, tries=before.tries + 1, reason=reason[:LONGEST_REASON], tokens=before.tokens + spent
        )

    def succeeded(self, task: str) -> bool:
        """Note that the task has a result; return whether it was failing."""
        return self._tasks.pop(task, None) is not None

    def wire(self) -> dict[str, Any]:
        """Return what is published under ``failing``, with everything :meth:`restore` needs."""
        return {task: asdict(failing) for task, failing in self._tasks.items()}

    def restore(self, fields: Mapping[str, Any]) -> None:
        """Restore what :meth:`wire` gave."""
        self._tasks = {task: FailingTask(**failing) for task, failing in fields.items()}
