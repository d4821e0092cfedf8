"""A program's own sources are asked like the memories that come with the package."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from context_builder.assembly import Candidate, RetrievalQuery
from context_builder.assembly.sources import MemoryRecord
from context_builder.testing import InMemoryStore

TURN = {"user_message": "boat noise", "history": [{"role": "user", "content": "word " * 40}] * 5}


class Notes:
    """Is only read."""

    name = "notes"

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        return [Candidate("note-1", f"about {query.query}", base_score=0.9)]

    async def warm_up(self) -> None:
        return None


class Diary(Notes):
    """Keeps what leaves histories, too."""

    name = "diary"

    def __init__(self) -> None:
        self.kept: list[MemoryRecord] = []

    async def remember(self, record: MemoryRecord) -> None:
        self.kept.append(record)


async def test_a_source_that_is_only_read_is_asked_beside_the_store_and_keeps_nothing(builder) -> None:
    made = builder(store=InMemoryStore(), sources=[Notes()])
    context = await made.build_for_turn(TURN, 100)
    await made.drain()
    assert context.debug["snippet_ids"] == ["note-1"]
    assert set(context.debug["memory_states"]) == {"memory", "notes"}


async def test_a_source_that_remembers_keeps_what_left_the_history(builder) -> None:
    diary = Diary()
    made = builder(sources=[diary])
    await made.build_for_turn(TURN, 100)
    await made.drain()
    assert [record.kind for record in diary.kept] == ["session_summary"]


def test_two_memories_of_one_name_are_refused(builder) -> None:
    with pytest.raises(ValueError, match="notes, notes"):
        builder(sources=[Notes(), Notes()])
