"""Transcripts in YAML, whose fields are those of JSON; all values are texts, so that ``1:30`` stays a time."""

from __future__ import annotations

from typing import Final

import yaml

from context_builder.transcript.formats.documents import read_parsed
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript

_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # many times as fast where libyaml is there


_DEEPEST: Final = 100
"""Lists and mappings within each other; libyaml takes the square of the depth, and its stack ends at some 10,000."""


def read_yaml(source: Source) -> Transcript:
    """Return the transcript in a file's first document. Raises :class:`ValueError`."""
    try:
        _check(source.text)
        document = next(yaml.load_all(source.text, Loader=_Loader), None)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:200]}") from None
    return read_parsed(document, source)


def _check(text: str) -> None:
    """Raise :class:`ValueError` for what would take very long to load, or end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("YAML with aliases, which may grow without end")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
