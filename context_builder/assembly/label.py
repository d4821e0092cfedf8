"""How the prompt says where a memory is from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from context_builder.quoting import quoted_line, quoted_name
from context_builder.timestamps import day

UNNAMED: Final = "memory"
"""Where a memory is from that says nothing of it."""

LONGEST: Final = 80
"""Characters; a label is one short line, whatever it is made of."""

_KEYS: Final = ("label", "source", "speaker", "type")


def label_of(metadata: Mapping[str, Any], speaker: str | None = None, time: datetime | None = None) -> str:
    """``Alice, 2025-12-10`` of who spoke and when; else what the metadata names as its source; else :data:`UNNAMED`."""
    if speaker:
        return ", ".join(part for part in (quoted_name(speaker), day(time) if time else None) if part)
    return next((quoted_line(str(metadata[key]), LONGEST) for key in _KEYS if metadata.get(key)), UNNAMED)
