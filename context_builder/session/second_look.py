"""Messages that the last resort summarized, at hand until the model works again and can do them better."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from context_builder.session.entry import Entry

MOST_TRIES: Final = 3
"""Second looks at the same messages that come to nothing."""


class SecondLook:
    """The newest of them, up to ``room`` tokens as ``count`` counts them; in this process alone, so that an outage
    costs Redis nothing and a restart leaves things as they are."""

    def __init__(self, room: int, count: Callable[[str], int]) -> None:
        self._room = room
        self._count = count
        self._entries: deque[Entry] = deque()
        self._tokens = 0
        self._tries = 0
        self._model_works = False

    @property
    def is_due(self) -> bool:
        """Whether anything is at hand and the last summary was the model's."""
        return bool(self._entries) and self._model_works

    @property
    def at_hand(self) -> Sequence[Entry]:
        """Oldest first."""
        return self._entries

    def summarized(self, entries: Sequence[Entry], *, degraded: bool) -> None:
        """``entries`` were summarized, by the last resort if ``degraded``."""
        self._model_works = not degraded
        if degraded:
            self._entries.extend(entries)
            self._tokens += sum(self._count(entry.text) for entry in entries)
            while self._tokens > self._room:
                self._drop_oldest()

    def put_off(self) -> None:
        """The model does not work; wait for its next summary."""
        self._model_works = False

    def failed(self, entries: Sequence[Entry]) -> None:
        """Nothing better came of ``entries``, the oldest at hand; in the end they stay as they are."""
        self.put_off()
        self._tries += 1
        if self._tries == MOST_TRIES:
            self.done(entries)

    def done(self, entries: Sequence[Entry]) -> None:
        """``entries``, the oldest at hand, were done again."""
        self._tries = 0
        for _ in entries:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._tokens -= self._count(self._entries.popleft().text)
