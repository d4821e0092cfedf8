"""How far what left each session's prompts is summarized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.assembly.tally import Message, plain

Key = tuple[str, str | None, str | None]
"""In which memory, of which tenant and session."""

_MARK: Final = 8
_REMEMBERED: Final = 4_096


class Trail:
    """Where to go on, known by the last messages that are summarized: a history may come whole or as what is new of it.

    Of the sessions last summarized only; another one's history is summarized anew from its oldest message.
    """

    def __init__(self) -> None:
        self._marks: dict[Key, tuple[int, ...]] = {}

    def place(self, key: Key, messages: Sequence[Message]) -> int:
        """How many of ``messages``, the oldest, are summarized."""
        mark = self._marks.get(key)
        if mark is None:
            return 0
        for end in range(len(messages), 0, -1):
            if _of(messages[end - 1]) == mark[-1]:
                before = messages[max(end - len(mark), 0) : end]
                if tuple(map(_of, before)) == mark[-len(before) :]:
                    return end
        return 0

    def go_on(self, key: Key, messages: Sequence[Message]) -> None:
        """All of ``messages``, the oldest of the history, are summarized."""
        self._marks.pop(key, None)
        self._marks[key] = tuple(map(_of, messages[-_MARK:]))
        if len(self._marks) > _REMEMBERED:
            del self._marks[next(iter(self._marks))]


def _of(message: Message) -> int:
    return hash((message.get("role"), plain(message["content"])))
