"""A conversation that comes with the package, of five researchers and an assistant, and a document that fits it."""

from __future__ import annotations

from importlib.resources import as_file, files

from context_builder.transcript import Utterance, read_transcript


def load_demo() -> list[Utterance]:
    """Return the bundled conversation, from ecology over machine learning and robotics to law and ethics."""
    with as_file(files(__name__) / "conversation.jsonl") as path:
        return read_transcript(path).utterances


def load_demo_document() -> str:
    """Return a page, in Markdown, of rules that the conversation comes to speak of."""
    return files(__name__).joinpath("permits.md").read_text("utf-8")
