"""Passages of several hops as artifacts, with the links between them as edges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from context_builder.knowledge.artifact import Artifact, ArtifactKind, Edge, Status
from scripts.benches.shared.labelled import rows_of
from scripts.benches.shared.report import Report


@dataclass(frozen=True)
class Passages:
    """Artifacts by ref, edges, and questions with the refs that answer each."""

    name: str
    artifacts: dict[str, Artifact]
    edges: tuple[Edge, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]


def passages_of(name: str, data: Path, report: Report) -> Passages:
    """The passages of ``name``, such as ``hotpot``."""
    rows = list(rows_of(data, name, report, "passages"))
    artifacts = {
        row["pid"]: Artifact(
            kind=ArtifactKind.DOCUMENT, title=row["title"], content=row["text"], status=Status.APPROVED
        )
        for row in rows
    }
    edges = tuple(Edge(from_ref=row["pid"], to_ref=to, type="links") for row in rows for to in row["links"])
    asked = rows_of(data, name, report, "questions")
    return Passages(name, artifacts, edges, tuple((row["question"], frozenset(row["gold"])) for row in asked))
