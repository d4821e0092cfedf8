"""What a transcript's file says, as lines ``speaker | text``."""

from __future__ import annotations

import json
from pathlib import Path

from context_builder.transcript import Transcript, read_transcript


def transcript(folder: Path, name: str, content: object) -> Transcript:
    """Read a file of this name that holds a text, bytes, or a JSON document."""
    file = folder / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_transcript(file)


def heard(folder: Path, name: str, content: object) -> list[str]:
    """Return what is heard of a file."""
    return [f"{one.speaker} | {one.text}" for one in transcript(folder, name, content).utterances]
