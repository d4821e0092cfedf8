"""Recorded conversations, read from the files people have of them."""

from context_builder.transcript.transcript import read_transcript
from context_builder.transcript.utterance import Utterance

__all__ = ["Utterance", "read_transcript"]
