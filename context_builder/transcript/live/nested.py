"""Services whose texts stand deep in their messages: Kaldi's server, Tencent, Alibaba, iFlytek, FunASR, and Yandex.

Where each has what it heard, and how it says that this is final, is in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from context_builder.transcript.fields import first_object, inner, optional_text, parse
from context_builder.transcript.formats.speech_utterances import iflytek_words
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Heard, Utterance, channel_name


@dataclass(frozen=True, slots=True)
class Nested:
    """A service: ``final`` returns the text that is final in a message, and what tells that text from others."""

    name: str
    matches: Callable[[Message], bool]
    final: Callable[[Message], tuple[str, object]]


def _of_kaldi(message: Message) -> tuple[str, object]:
    result = inner(message, "result")
    first = first_object(result.get("hypotheses"))
    return (optional_text(first, "transcript") if result.get("final") is True else "", message.get("segment"))


def _of_tencent(message: Message) -> tuple[str, object]:
    result = inner(message, "result")
    return (optional_text(result, "voice_text_str") if result.get("slice_type") == 2 else "", result.get("index"))


def _of_dashscope(message: Message) -> tuple[str, object]:
    sentence = inner(message, "payload", "output", "sentence")
    ends = sentence.get("sentence_end", sentence.get("end_time") is not None)
    return (optional_text(sentence, "text") if ends is True else "", sentence.get("begin_time"))


def _of_alibaba(message: Message) -> tuple[str, object]:
    payload = inner(message, "payload")
    ends = inner(message, "header").get("name") == "SentenceEnd"
    return (optional_text(payload, "result") if ends else "", payload.get("index"))


def _is_funasr(message: Message) -> bool:
    mode = message.get("mode")
    is_told = "wav_name" in message or "is_final" in message
    return mode in ("2pass-online", "2pass-offline") or (mode in ("online", "offline") and is_told)


def _of_funasr(message: Message) -> tuple[str, object]:
    is_final = str(message["mode"]).endswith("offline")
    return (optional_text(message, "text") if is_final else "", None)


def _is_iflytek(message: Message) -> bool:
    is_its = isinstance(message.get("data"), str) or "cn" in inner(message, "data")
    return message.get("action") in ("started", "result") and is_its


def _of_iflytek(message: Message) -> tuple[str, object]:
    data = message.get("data")
    heard = parse(data) if isinstance(data, str) and data.lstrip().startswith("{") else data
    said = inner(heard, "cn", "st") if isinstance(heard, dict) else {}
    return (iflytek_words(said) if str(said.get("type")) == "0" else "", said.get("bg"))


NESTED: Final = (
    Nested("Kaldi's server", lambda one: "hypotheses" in inner(one, "result"), _of_kaldi),
    Nested("Tencent", lambda one: "voice_text_str" in inner(one, "result"), _of_tencent),
    Nested("DashScope", lambda one: "event" in inner(one, "header") and "payload" in one, _of_dashscope),
    Nested("Alibaba", lambda one: "name" in inner(one, "header") and "namespace" in inner(one, "header"), _of_alibaba),
    Nested("FunASR", _is_funasr, _of_funasr),
    Nested("iFlytek", _is_iflytek, _of_iflytek),
)


def is_nested(message: Message) -> bool:
    return any(one.matches(message) for one in NESTED)


def read_nested(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield the text that is final in a message, once. Raises :class:`ValueError`, also for a failure that it tells."""
    header = inner(message, "header")
    if header.get("event") == "task-failed" or header.get("name") == "TaskFailed":
        raise ValueError(
            f"the transcriber reports an error: {optional_text(header, 'error_message', 'status_text')[:200]}"
        )
    service = next(one for one in NESTED if one.matches(message))
    text, key = service.final(message)
    if text and (key is None or stream.is_new(service.name, str(key), text)):
        yield Utterance(UNKNOWN_SPEAKER, text)


def is_yandex(message: Message) -> bool:
    return any("alternatives" in inner(message, key) for key in ("partial", "final")) or "final_refinement" in message


def read_yandex(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what is final, or with its signs and numbers what was: https://yandex.cloud/docs/speechkit/stt/api."""
    refined = inner(message, "final_refinement")
    final = inner(refined, "normalized_text") or inner(message, "final")
    text = optional_text(first_object(final.get("alternatives")), "text")
    index = refined.get("final_index", inner(message, "audio_cursors").get("final_index", "0"))
    channel = final.get("channel_tag")
    key = ("yandex", str(channel), str(index))
    said = Utterance(UNKNOWN_SPEAKER if channel is None else channel_name(channel), text)
    if not text:
        return
    if refined and stream.was_said(key):
        yield from stream.corrected(key, text=text)
    elif refined or "audio_cursors" in message:
        yield from stream.said_or_corrected(key, said)
    else:
        yield said
