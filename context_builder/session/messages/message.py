"""A delivery from the input list becomes a message here, or is refused with a reason."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

import orjson

from context_builder.clock import Instant, epoch
from context_builder.errors import MessageError
from context_builder.memory.rows import as_key
from context_builder.redaction.secret import PLACEHOLDER
from context_builder.session.messages.revision import MessageReference, SpeakerRename, StrikeRequest, read_reference
from context_builder.tracing import TRACEPARENT, TraceContext
from context_builder.values import value

CONSILIENCE: Final = "Consilience"
"""Speaker of the assistant's own contributions."""

UNKNOWN_SPEAKER: Final = "Unknown"
MAX_NUMBER: Final = 2**53 - 1
"""Largest integer that every JSON reader keeps exact (RFC 8259, section 6)."""

_MASK: Final = "a mask, such as §§secret(…), in place of what was said"
_IDENTITY_BYTES: Final = 16
_STAMP_BYTES: Final = 6
_METADATA_DEPTH: Final = 100
_INTEGER_DIGITS: Final = 1000


@value
class Message:
    """What somebody said, in the types the state publishes.

    ``timestamp`` is ISO 8601 as it came, or the arrival time when it was missing or unreadable; the
    original is then in ``timestamp_raw``. ``time`` is the same moment in epoch seconds, as
    :mod:`context_builder.clock` reads it, or as the inbox corrects it.
    ``identity`` is empty when it has neither number nor timestamp: whether it was said or sent a second time cannot be
    known, and a "Yes." that is lost is worse than one that is there twice.
    ``trace`` is the span of whoever pushed it. ``stamp`` is a digest of the timestamp as it came, empty where none did.

    A message that ``corrects`` another one says what that one says instead; an empty text or speaker stays as it is.
    """

    text: str
    speaker: str
    number: int | None
    timestamp: str
    time: float
    identity: bytes
    confidence: float = 1.0
    consilience: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timestamp_raw: Any = None
    trace: TraceContext | None = None
    stamp: str = ""
    corrects: MessageReference | None = None

    @property
    def first_identity(self) -> bytes:
        """Return the digest by which the memory knows the message, whatever it says later."""
        came = self.timestamp if self.timestamp_raw is None else self.timestamp_raw
        return identity_of(self.consilience, self.number, self.speaker, self.text, came)

    def of_number(self, number: int) -> Message:
        """Return the correction as the message with this number that it corrects."""
        return replace(self, number=number, corrects=None)

    @property
    def user_id(self) -> str | None:
        """Return the speaker's user id, where the metadata has one."""
        named = self.metadata.get("user_id")
        return as_key(named) if isinstance(named, str) and named.strip() else None


Delivered = Message | StrikeRequest | SpeakerRename
"""The contents that a delivery may have."""


def decode(raw: bytes, now: Instant, *, max_bytes: int) -> Delivered:
    """Return what one delivery holds. Raises :class:`MessageError` with the reason it is nothing."""
    if len(raw) > max_bytes:
        raise MessageError(f"larger than {max_bytes} bytes")
    return delivered(_parse(raw), now)


def delivered(fields: Mapping[str, Any], now: Instant) -> Delivered:
    """Return what a parsed delivery holds. Raises :class:`MessageError` with the reason it is nothing."""
    if fields.get("text") is None and fields.get("strikes") is not None:
        return _strike(fields)
    if fields.get("text") is None and fields.get("renames") is not None:
        return _rename(fields)
    return from_fields(fields, now)


def _strike(fields: Mapping[str, Any]) -> StrikeRequest:
    reference = read_reference(fields["strikes"], "strikes")
    came, origin = fields.get("timestamp"), fields.get("origin") or ""
    if not isinstance(origin, str):
        raise MessageError("origin is not a string")
    if not _is_unicode(origin):
        raise MessageError("invalid Unicode")
    told = ["strikes", str(fields["strikes"]), _publishable(came), *([origin] if origin else [])]
    identity = _digest(told, _IDENTITY_BYTES) if came else b""
    return StrikeRequest(reference, identity, _trace(fields), origin)


def _rename(fields: Mapping[str, Any]) -> SpeakerRename:
    old, new, came = fields["renames"], fields.get("speaker"), fields.get("timestamp")
    if not isinstance(old, str) or not isinstance(new, str) or not old.strip() or not new.strip():
        raise MessageError("renames needs two names: that of a speaker, and the one to call them in speaker")
    if not (_is_unicode(old) and _is_unicode(new)):
        raise MessageError("invalid Unicode")
    if CONSILIENCE in (old, new):
        raise MessageError(f"{CONSILIENCE} is the assistant, and nobody else")
    if PLACEHOLDER.search(new):
        raise MessageError(f"a name has {_MASK}")
    identity = _digest(["renames", old, new, _publishable(came)], _IDENTITY_BYTES) if came else b""
    return SpeakerRename(old, new, identity, _trace(fields))


def _trace(fields: Mapping[str, Any]) -> TraceContext | None:
    written = fields.get(TRACEPARENT)
    return None if written is None else TraceContext.parse(written)


def is_assistants(fields: Mapping[str, Any]) -> bool:
    """Return whether a message, as a listener sends it or as a state shows it, is the assistant's."""
    return fields.get("type") == "consilience" or fields.get("speaker") == CONSILIENCE


def from_fields(fields: Mapping[str, Any], now: Instant) -> Message:
    """Return the message in a parsed delivery. Raises :class:`MessageError` with the reason where there is none."""
    text, named, corrects = fields.get("text"), fields.get("speaker"), _corrects(fields)
    if corrects is not None and text is None and _speaker(named) != UNKNOWN_SPEAKER:
        text = ""
    elif not isinstance(text, str):
        raise MessageError("text is missing" if text is None else "text is not a string")
    elif not text.strip():
        raise MessageError("text is blank")
    speaker = "" if corrects is not None and named is None else _speaker(named)
    if not (_is_unicode(text) and _is_unicode(speaker)):
        raise MessageError("invalid Unicode")
    if corrects is not None and PLACEHOLDER.search(f"{text}\n{speaker}"):
        raise MessageError(f"a correction has {_MASK}")
    number = _number(fields.get("message_number"))
    consilience = is_assistants({**fields, "speaker": speaker})
    came = fields.get("timestamp")
    if isinstance(came, float) and not math.isfinite(came):
        came = str(came)  # of which JSON would make null, and that tells nothing apart
    timestamp, time = _moment(came, now)
    tells_itself_apart = number is not None or came is not None
    identity = identity_of(consilience, number, speaker, text, came)
    if corrects is not None:  # it may say what the message said at first, or be made again
        identity = _digest([identity.hex(), str(corrects), _publishable(came)], _IDENTITY_BYTES)
    return Message(
        text=text,
        speaker=speaker,
        number=number,
        timestamp=timestamp,
        time=time,
        identity=identity if tells_itself_apart else b"",
        confidence=_confidence(fields.get("confidence")),
        consilience=consilience,
        metadata=_metadata(fields.get("metadata")),
        timestamp_raw=None if timestamp == came else _publishable(came),
        trace=_trace(fields),
        stamp=stamp_of(came),
        corrects=corrects,
    )


def _corrects(fields: Mapping[str, Any]) -> MessageReference | None:
    written = fields.get("corrects")
    return None if written is None else read_reference(written, "corrects")


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _parse_leniently(raw)
    if not isinstance(value, dict):
        raise MessageError("not a JSON object")
    return value


def _parse_leniently(raw: bytes) -> Any:
    """Parse what Python producers write although JSON forbids it: NaN, and integers of any size."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise MessageError("not UTF-8") from None
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise MessageError("nested too deeply") from None
    except ValueError:
        raise MessageError("not JSON") from None


def _integer(digits: str) -> int | float:
    """Python refuses to read integers beyond some thousand digits; no field of a message needs one."""
    return int(digits) if len(digits) <= _INTEGER_DIGITS else math.inf


def _speaker(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value.strip() else UNKNOWN_SPEAKER


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _number(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 32):
            raise MessageError("message_number is not a whole number")
        value = int(digits)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise MessageError("message_number is not a whole number")
    if not 0 <= value <= MAX_NUMBER:
        raise MessageError("message_number is outside 0 to 2^53-1")
    return value


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1.0
    try:
        confidence = float(value)
    except OverflowError:
        return 1.0
    return confidence if math.isfinite(confidence) else 1.0


def _moment(value: Any, now: Instant) -> tuple[str, float]:
    """Return ``value`` and its epoch seconds, or the arrival time when it is not readable ISO 8601."""
    if isinstance(value, str) and value.isascii() and value.isprintable():  # fromisoformat takes any separator
        try:
            time = epoch(datetime.fromisoformat(value), near=now.wall)
        except ValueError:
            return now.iso(), now.wall
        return value, now.wall if time is None else time
    return now.iso(), now.wall


def _metadata(value: Any) -> Mapping[str, Any]:
    return _publishable(value) if isinstance(value, dict) else {}


def _publishable(value: Any, depth: int = 0) -> Any:
    """Return ``value`` with what strict JSON cannot carry made harmless: a string, whatever else it is."""
    if depth > _METADATA_DEPTH:
        return None
    if isinstance(value, dict):
        return {_clean(str(key)): _publishable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_publishable(item, depth + 1) for item in value]
    if isinstance(value, float):
        return float(value)  # JSON takes no numbers of derived types, such as those of NumPy
    if value is None or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    return _clean(str(value))


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def identity_of(consilience: bool, number: int | None, speaker: str, text: str, timestamp: Any) -> bytes:  # noqa: FBT001 (a field among fields)
    """Return a digest of what makes two deliveries the same message (the contract's "Identity")."""
    when = _publishable(timestamp) if number is None else None
    return _digest([consilience, number, speaker, text, when], _IDENTITY_BYTES)


def said_at_first(published: Mapping[str, Any], speaker: str, text: str) -> bool:
    """Return whether a message that was corrected since, as a state shows it, is what ``speaker`` said in ``text``."""
    came = published.get("timestamp_raw", published.get("timestamp"))
    identity = identity_of(published.get("type") == "consilience", published.get("message_number"), speaker, text, came)
    return bool(identity.hex() == published.get("origin"))


def stamp_of(timestamp: Any) -> str:
    """Return a digest that tells timestamps from each other; empty where there is none."""
    return "" if timestamp is None else _digest(_publishable(timestamp), _STAMP_BYTES).hex()


def _digest(parts: Any, size: int) -> bytes:
    return blake2b(orjson.dumps(parts), digest_size=size).digest()
