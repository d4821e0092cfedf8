"""Recorded conversations, read from the files people have of them."""

from context_builder.transcript.transcript import read_transcript
from context_builder.transcript.utterance import Transcript, Utterance

__all__ = ["Transcript", "Utterance", "read_transcript"]
