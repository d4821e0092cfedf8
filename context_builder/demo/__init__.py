"""A conversation that comes with the package: five researchers, one assistant, eight minutes."""

from __future__ import annotations

from importlib.resources import as_file, files

from context_builder.transcript import Utterance, read_transcript


def load_demo() -> list[Utterance]:
    """Return the bundled conversation, from ecology over machine learning and robotics to law and ethics."""
    with as_file(files(__name__) / "conversation.jsonl") as path:
        return read_transcript(path)
