"""A task is failing when calls for it have come to nothing since its last result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from context_builder.clock import Instant
from context_builder.costs import Usage

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
