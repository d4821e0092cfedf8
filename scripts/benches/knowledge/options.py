"""What a run of the benchmark of packages measures with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """``data`` holds labelled texts, ``known`` documents and questions about them; ``cache`` keeps embeddings and
    ``database`` what speed is measured on for the next run. ``static`` embeddings take the place of the embedded
    engine's."""

    data: Path | None = None
    quick: bool = False
    embeddings: bool = True
    cache: Path | None = None
    database: Path | None = None
    static: bool = False
    known: Path | None = None
