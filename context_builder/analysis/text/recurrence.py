"""Which terms keep coming back in a session, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from context_builder.analysis.text.words import is_content, stem, words

DEFAULT_LIMIT: Final = 2000
"""Stems remembered; about 200 kB."""


class Recurrence(Mapping[str, int]):
    """In how many messages each stem has occurred, for the commonest ``limit`` stems or so.

    When twice as many are held, all counts are lowered by the smallest one that has to go, and
    what reaches zero is forgotten: a stem that recurs is never lost to a flood of new ones
    (Misra and Gries 1982, "Finding repeated elements").
    """

    def __init__(self, limit: int = DEFAULT_LIMIT, *, before: Mapping[str, int] | None = None) -> None:
        """Counting goes on from what was counted ``before``."""
        self._limit = limit
        self._counts = dict(before or {})

    def add(self, text: str) -> None:
        """Count the stems of one message."""
        for found in {stem(word.lower) for word in words(text) if is_content(word)}:
            self._counts[found] = self._counts.get(found, 0) + 1
        if len(self._counts) > 2 * self._limit:
            self._forget()

    def _forget(self) -> None:
        toll = sorted(self._counts.values(), reverse=True)[self._limit]
        self._counts = {found: count - toll for found, count in self._counts.items() if count > toll}

    def __getitem__(self, found: str) -> int:
        return self._counts[found]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)
