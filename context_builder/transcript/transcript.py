"""A transcript file is read here, whatever its format."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from context_builder.errors import TranscriptError
from context_builder.transcript.cues import parse_cues
from context_builder.transcript.json_document import parse_json_document, read_slack_folder
from context_builder.transcript.json_lines import parse_json_lines
from context_builder.transcript.utterance import Utterance

_PARSERS: Final = {
    ".jsonl": parse_json_lines,
    ".ndjson": parse_json_lines,
    ".vtt": parse_cues,
    ".srt": parse_cues,
    ".json": parse_json_document,
}


def read_transcript(path: Path) -> list[Utterance]:
    """Return the utterances in the order of the file.

    The ending of the name tells the format: ``.jsonl`` or ``.ndjson`` (JSON lines), ``.vtt``
    (WebVTT), ``.srt`` (SubRip) or ``.json`` (what Deepgram, AssemblyAI, Whisper, Slack or Matrix
    write). A folder is a channel of a Slack export. Raises :class:`TranscriptError` naming the file, and the
    line where there is one.
    """
    if path.is_dir():
        return read_slack_folder(path)
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        raise TranscriptError(f"{path}: unknown format; use {', '.join(_PARSERS)}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TranscriptError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TranscriptError(f"{path}:{line}: not UTF-8") from None
    utterances = parse(text, str(path))
    if not utterances:
        raise TranscriptError(f"{path}: holds nothing that anybody said")
    return utterances
