"""JSON and YAML documents, by whichever program they were written: found in a table by what they hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final

import yaml

from context_builder.transcript.fields import Object, inner, is_json, optional_text, parse, some_objects
from context_builder.transcript.formats import (
    google_speech,
    speech_utterances,
    speech_words,
    turns,
    whisper,
)
from context_builder.transcript.formats.chats import CHATS, DocumentFormat, read_chat
from context_builder.transcript.formats.exchanges import exchanges_in
from context_builder.transcript.formats.html_exports import is_html
from context_builder.transcript.formats.json_lines import read_json_lines
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript

__all__ = ["is_json", "read_document", "read_parsed"]

SPEECH: Final = (
    DocumentFormat("Deepgram", speech_utterances.is_deepgram, speech_utterances.read_deepgram),
    DocumentFormat("Watson", speech_words.is_watson, speech_words.read_watson),
    DocumentFormat("Google", google_speech.is_google, google_speech.read_google),
    DocumentFormat("Speechmatics", speech_words.is_speechmatics, speech_words.read_speechmatics),
    DocumentFormat("Azure", speech_utterances.is_azure, speech_utterances.read_azure),
    DocumentFormat("Amazon Transcribe", speech_words.is_aws, speech_words.read_aws),
    DocumentFormat("Rev", speech_words.is_rev, speech_words.read_rev),
    DocumentFormat("Soniox", speech_words.is_soniox, speech_words.read_soniox),
    DocumentFormat("ElevenLabs", speech_words.is_elevenlabs, speech_words.read_elevenlabs),
    DocumentFormat("3Play", speech_words.is_three_play, speech_words.read_three_play),
    DocumentFormat("iFlytek", speech_utterances.is_iflytek, speech_utterances.read_iflytek),
    DocumentFormat("YouTube", speech_utterances.is_json3, speech_utterances.read_json3),
    DocumentFormat("AssemblyAI", speech_utterances.is_assemblyai, speech_utterances.read_assemblyai),
    DocumentFormat("whisper.cpp", whisper.is_whisper_cpp, whisper.read_whisper_cpp),
    DocumentFormat("Whisper", whisper.is_whisper, whisper.read_whisper),
)
"""By an object."""

_WRAPPERS: Final = ("result", "results", "data", "output", "response", "transcription", "transcript", "body")
"""Where services put what they return of another one's."""


_WHOLE: Final = (
    "transcript", "transcription", "full_transcript", "text", "content", "concatenated_transcript", "vtt", "srt",
    "captions", "subtitles", "body", "message",
)  # fmt: skip
"""Where a document has the whole transcript as a text, when it has it in no other way."""


_OTHERS: Final = frozenset(
    (
        "speaker_name",
        "speakerName",
        "startTime",
        "start_time",
        "participant",
        "start_ms",
        "startMs",
        "offset",
        "user",
        "results",
    )
)
"""Fields of segments that are not Whisper's."""


def read_document(source: Source) -> Transcript:
    """Return the transcript in a JSON document, or in lines of JSON. Raises :class:`ValueError`."""
    try:
        document = parse(source.text)
    except ValueError:
        lines = [line for line in source.text.split("\n") if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines[:2]) and _is_json(lines[0]):
            return read_json_lines(source)
        if several := _one_after_another(source.text):
            source.text = "\n".join(several)
            return read_json_lines(source)
        if (document := _as_far_as_it_goes(source)) is None:
            raise
    return read_parsed(document, source)


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_ABOVE: Final = re.compile(r"(?:[^\n{\[]*\n){0,20}?(?=[{\[])")
"""Lines above a document, such as a program's log."""


def _as_far_as_it_goes(source: Source) -> Any:
    """Return a document with other text around it, or one that is cut off, which is noted; None where there is none."""
    above = _ABOVE.match(source.text)
    start = above.end() if above else 0
    try:
        document, end = json.JSONDecoder(strict=False).raw_decode(source.text, start)
    except (ValueError, RecursionError):
        end, document = len(source.text), _closed(source.text[start:])
        if document is not None:
            source.problem("cut off; read as far as it goes", source.text.count("\n") + 1)
        return document
    if (rest := source.text[end:].lstrip()) or start:
        place = 0 if start else len(source.text) - len(rest)
        source.problem("text that is no JSON", source.text.count("\n", 0, place) + 1)
    return document


def _closed(text: str) -> Any:
    """Return a document that ends too early without its last, unfinished part; None where that is not all."""
    open_: list[str] = []
    end, still_open = 0, ""
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            open_.append("}" if token[0] == "{" else "]")
        elif token[0] in ("}", "]"):
            if not open_ or open_.pop() != token[0]:
                return None
            end, still_open = token.end(), "".join(reversed(open_))
    if not still_open:
        return None
    try:
        return parse(text[:end] + still_open)
    except ValueError:
        return None


def _one_after_another(text: str) -> list[str]:
    """Return the objects that stand one after another, a line each; none where they are not all that there is."""
    decoder = json.JSONDecoder(strict=False)
    place, found = 0, []
    text = text.strip()
    while place < len(text):
        try:
            one, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return []
        found.append(json.dumps(one))
        while place < len(text) and (text[place].isspace() or text[place] == ","):
            place += 1
    return found


def read_parsed(document: Any, source: Source) -> Transcript:
    """Return the transcript in a document that is parsed. Raises :class:`ValueError`."""
    document = _rows(document) or document
    error = optional_text(document, "error") if isinstance(document, dict) else ""
    if error and not any(key in document for key in ("text", "segments", "results")):
        raise ValueError(f"an error instead of a transcript: {error[:200]}")
    if (chat := read_chat(document, source)) is not None:
        return chat
    if (speech := _speech_of(document)) is not None and not _is_written(document):
        found = speech.read(document, source)
        begun = turns.begun(document, made=False) if speech.name == "Whisper" else None
        return found if found.started is not None else replace(found, started=begun)
    if isinstance(document, dict):
        for key in _WRAPPERS:
            if (speech := _speech_of(document.get(key))) is not None:
                return speech.read(document[key], source)
    if said := turns.words_by_paragraph(document):
        return Transcript(said)
    if asked := exchanges_in(document):
        return turns.read_turns(asked, source)
    if turns.turns_in(document) is not None:
        return turns.read_turns(document, source)
    if isinstance(document, list) and not document:
        return Transcript([])
    if text := _text_in(document):
        from context_builder.transcript.transcript import read_text  # which reads JSON here

        source.text = text
        return replace(read_text(source), started=turns.begun(document))
    known = ", ".join(one.name for one in (*SPEECH, *CHATS))
    raise ValueError(f"{_shown(document)}, not a document as {known} or a meeting tool write it")


_FIELD: Final = re.compile(r"[a-z][A-Za-z0-9_-]{0,29}")
_SHOWN: Final = 4
"""Fields by which a document is told in an error."""


def _shown(document: Any) -> str:
    """Return what a document looks like, by the names of its first fields, as far as they are no names of people."""
    if isinstance(document, list):
        return "a list"
    names = [name for name in document if _FIELD.fullmatch(name)] if isinstance(document, dict) else []
    others = " and others" if isinstance(document, dict) and len(document) > _SHOWN else ""
    return f"an object with {', '.join(names[:_SHOWN])}{others}" if names else "a value of another kind"


def _rows(document: Any) -> Object | None:
    """Return rows of two times and a text, as faster-whisper's tuples are written, as segments; None for all else."""
    segments = []
    for row in document if isinstance(document, list) else ():
        match row:
            case [int() | float() as start, int() | float() as end, str(text)]:
                segments.append({"start": start, "end": end, "text": text})
            case _:
                return None
    return {"segments": segments} if segments else None


def _is_written(document: Object) -> bool:
    """Return whether all that a document has is a text of several lines, or with markup."""
    text = document.get("text")
    is_alone = isinstance(text, str) and not any(isinstance(value, list | dict) for value in document.values())
    return is_alone and ("\n" in str(text).strip() or is_html(str(text)))


def _text_in(document: Any) -> str:
    """Return the text that is the whole transcript of a document, with its line ends."""
    if not isinstance(document, dict):
        return ""
    for holder in (document, *(inner(document, key) for key in _WRAPPERS)):
        for key in _WHOLE:
            if isinstance(text := holder.get(key), str) and text.strip():
                return text
    return ""


def _speech_of(document: Any) -> DocumentFormat | None:
    """Return the kind of a document, if it is of speech."""
    if not isinstance(document, dict):
        return None
    found = next((one for one in SPEECH if one.matches(document)), None)
    return None if found is None or (found.name == "Whisper" and _is_of_turns(document)) else found


def _is_of_turns(document: Object) -> bool:
    """Return whether segments have names for fields that Whisper's have not."""
    some = some_objects(document.get("segments"), 5)
    is_own = any("text" in one for one in some) and not any(
        one.keys() & _OTHERS or isinstance(one.get("speaker"), dict) for one in some
    )
    return bool(some) and not is_own and turns.turns_in(document) is not None


def _is_json(line: str) -> bool:
    try:
        parse(line)
    except ValueError:
        return False
    return True


_YAML = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # many times as fast where libyaml is there
_DEEPEST: Final = 100
"""Lists and mappings within each other; libyaml takes the square of the depth, and its stack ends at some 10,000."""


def read_yaml(source: Source) -> Transcript:
    """Return the transcript in the first document of a file in YAML. Raises :class:`ValueError`.

    Its fields are those of JSON; all values are texts, so that ``1:30`` stays a time.
    """
    try:
        _refuse_costly_yaml(source.text)
        document = next(yaml.load_all(source.text, Loader=_YAML), None)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:200]}") from None
    return read_parsed(document, source)


def _refuse_costly_yaml(text: str) -> None:
    """Raise :class:`ValueError` for what would take very long to load, or end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_YAML):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("YAML with aliases, which may grow without end")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
