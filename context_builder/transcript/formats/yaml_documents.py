"""Transcripts in YAML, whose fields are those of JSON; all values are texts, so that ``1:30`` stays a time."""

from __future__ import annotations

import yaml

from context_builder.transcript.formats.documents import read_parsed
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript

_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # many times as fast where libyaml is there


def read_yaml(source: Source) -> Transcript:
    """Return the transcript in a file's first document. Raises :class:`ValueError`."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source.text, Loader=_Loader)):
            raise ValueError("YAML with aliases, which may grow without end")
        document = next(yaml.load_all(source.text, Loader=_Loader), None)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:200]}") from None
    return read_parsed(document, source)
