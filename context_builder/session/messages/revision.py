"""Revisions change what was said before: a correction, another name of a speaker, or a message that is struck.

A strike and a rename come as deliveries of their own, a correction as a message. A :class:`MessageReference` names the
message that is meant: by its number, or by the id that the session gave it. Which one that is, is found by
:mod:`~context_builder.session.messages.message_index`; a revision says so by id.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Final

from context_builder.errors import MessageError
from context_builder.tracing import TraceContext
from context_builder.values import value

_ID: Final = re.compile(r"(?:id:|message:(?P<session>[^/]+)/)(?P<id>[0-9]{1,15})")
_LARGEST: Final = 2**53 - 1
_LONGEST_DIGITS: Final = 32


@value
class MessageReference:
    """Names a message by ``number`` or by ``id``, one of which is there; ``session`` is empty where it is not told."""

    number: int | None = None
    id: int | None = None
    session: str = ""

    def __str__(self) -> str:
        return f"message {self.number}" if self.id is None else f"message id:{self.id}"


def str_of(reference: MessageReference) -> str:
    """Return the reference as a delivery holds it."""
    return str(reference.number) if reference.id is None else f"id:{reference.id}"


def read_reference(written: Any, name: str) -> MessageReference:
    """Return the reference that the field ``name`` holds: a number, its digits, ``id:12`` or ``message:SESSION/12``.

    Raises :class:`MessageError`.
    """
    if isinstance(written, str):
        written = written.strip()
        if found := _ID.fullmatch(written):
            return MessageReference(id=int(found["id"]), session=found["session"] or "")
        if written.isascii() and written.isdigit() and len(written) <= _LONGEST_DIGITS:
            written = int(written)
    if isinstance(written, float) and written.is_integer():
        written = int(written)
    if isinstance(written, bool) or not isinstance(written, int) or not 0 <= written <= _LARGEST:
        raise MessageError(f"{name} is neither a message number nor an id such as id:12")
    return MessageReference(number=written)


@value
class StrikeRequest:
    """Asks that nothing of the message is left; ``identity`` tells the request from others.

    Of several messages with one number, ``origin`` tells which is meant, as in :class:`Correction`; empty: the newest.
    """

    reference: MessageReference
    identity: bytes = b""
    trace: TraceContext | None = None
    origin: str = ""


@value
class SpeakerRename:
    """Tells that whoever is called ``old`` in this session is ``new``, from its beginning on."""

    old: str
    new: str
    identity: bytes = field(default=b"", compare=False)
    trace: TraceContext | None = field(default=None, compare=False)


@value
class Correction:
    """Tells what the message ``id`` says: ``text``, None where its words stay, and ``speaker``, as it is sent.

    ``origin`` is the identity of the message as it was first sent, in hexadecimal, by which the memory knows it.
    """

    id: int
    origin: str
    text: str | None
    speaker: str
    number: int | None
    consilience: bool
    timestamp: str
    time: float


@value
class Strike:
    """Tells that nothing of the message ``id`` may be left. ``origin`` and ``number`` as in :class:`Correction`."""

    id: int
    origin: str
    number: int | None = field(default=None, compare=False)


Revision = Correction | Strike | SpeakerRename
