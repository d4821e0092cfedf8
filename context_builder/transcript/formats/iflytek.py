"""JSON of iFlytek's transcription of recordings, whose result is JSON in a text, and in that once more for a sentence.

https://www.xfyun.cn/doc/asr/ifasr_new/API.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from context_builder.transcript.fields import Object, inner, number, parse
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, speaker_name

_MILLISECOND: Final = 0.001


def is_iflytek(document: Any) -> bool:
    """Return whether a document is an answer of the service, or the result in it."""
    return isinstance(document.get("lattice"), list) or isinstance(inner(document, "content").get("orderResult"), str)


def read_iflytek(document: Any, source: Source) -> Transcript:
    """Return the transcript in a document. Raises :class:`ValueError`."""
    result = document if "lattice" in document else parse(document["content"]["orderResult"])
    said: list[Utterance] = []
    for one in _objects(result.get("lattice") if isinstance(result, dict) else None):
        with source.one_entry():
            best = one.get("json_1best")
            heard = parse(best) if isinstance(best, str) else best
            sentence = inner(heard, "st") if isinstance(heard, dict) else {}
            if text := words_of(sentence):
                label = sentence.get("rl")
                who = UNKNOWN_SPEAKER if label in (None, "0") else speaker_name(label)
                at, until = (number(sentence, key, "the sentence") for key in ("bg", "ed"))
                said.append(
                    Utterance(
                        who,
                        text,
                        None if at is None else at * _MILLISECOND,
                        until=None if until is None else until * _MILLISECOND,
                    )
                )
    return Transcript(said)


def words_of(sentence: Object) -> str:
    """Return the words of a sentence: of each, the likeliest."""
    words = (
        next(_objects(word.get("cw")), {}) for run in _objects(sentence.get("rt")) for word in _objects(run.get("ws"))
    )
    return " ".join("".join(str(word.get("w") or "") for word in words).split())


def _objects(value: object) -> Iterator[Object]:
    yield from (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()
