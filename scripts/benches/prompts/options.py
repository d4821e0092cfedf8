"""What the benchmark of prompts is asked for; no benchmark itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODEL: Final = "gpt-4o"


@dataclass(frozen=True)
class Options:
    """``data`` is the folder of texts; ``quick`` measures a tenth; of the conversations the first ``conversations``.

    Embeddings are kept in the folder ``cache``, so that a second run need not make them again.
    """

    data: Path
    quick: bool = False
    conversations: int | None = None
    embeddings: bool = True
    cache: Path | None = None

    def count(self, full: int) -> int:
        return max(1, full // 10) if self.quick else full
