"""What memories are searched for: long conversations, and passages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from context_builder.memory.memory import Memory
from scripts.benches.memory.relative_times import when
from scripts.benches.prompts.options import Options
from scripts.benches.shared.labelled import rows_of
from scripts.benches.shared.report import Report

AGAIN: Final = "²"
"""Ends the id of a memory that repeats another."""


@dataclass(frozen=True)
class Corpus:
    """Documents to be found in, and questions with the ids of those that answer each."""

    tenant: str
    memories: tuple[Memory, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]

    def without_names(self) -> Corpus:
        """Nothing but what was said is remembered: not who said it, nor when."""
        unnamed = tuple(replace(memory, speaker=None, time=None) for memory in self.memories)
        return replace(self, tenant=f"{self.tenant} unnamed", memories=unnamed)

    def with_times(self) -> Corpus:
        """What is searched also names the days that "yesterday" or "last month" mean."""
        told = tuple(
            replace(memory, text=f"{memory.text} {when(memory.text, memory.time)}") if memory.time else memory
            for memory in self.memories
        )
        return replace(self, tenant=f"{self.tenant} with times", memories=told)

    def twice(self, change: str = "") -> Corpus:
        """Everything is remembered a second time, with ``change`` at its end."""
        copies = (replace(memory, id=memory.id + AGAIN, text=memory.text + change) for memory in self.memories)
        return replace(self, tenant=f"{self.tenant} twice{change}", memories=(*self.memories, *copies))


def conversations(options: Options, report: Report) -> list[Corpus]:
    """Each conversation by itself."""
    turns: dict[str, list[Memory]] = defaultdict(list)
    for row in rows_of(options.data, "locomo", report, "messages"):
        said_at = datetime.strptime(row["session_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns[row["conv"]].append(
            Memory(
                row["dia_id"],
                row["text"],
                session_id=row["conv"],
                speaker=row["speaker"],
                time=said_at,
                position=row["message_number"],
            )
        )
    asked: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for row in rows_of(options.data, "locomo", report, "questions"):
        known = {memory.id for memory in turns[row["conv"]]}
        if evidence := known.intersection(row.get("evidence_fixed") or row["evidence"]):
            asked[row["conv"]].append((row["question"], frozenset(evidence)))
    found = [Corpus(name, tuple(memories), tuple(asked[name])) for name, memories in turns.items() if asked[name]]
    return found[: options.conversations]


def passages(options: Options, report: Report) -> Corpus:
    """All passages as one collection."""
    memories = [
        Memory(row["pid"], f"{row['title']}\n{row['text']}", "passage")
        for row in rows_of(options.data, "musique", report, "passages")
    ]
    rows = rows_of(options.data, "musique", report, "questions")
    return Corpus("passages", tuple(memories), tuple((row["question"], frozenset(row["gold"])) for row in rows))
