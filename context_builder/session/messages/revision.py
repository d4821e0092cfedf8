"""Revisions change what was said before: a correction, another name of a speaker, or a message that is struck.

A strike and a rename come as deliveries of their own, a correction as a message. Which message is meant is found by
:mod:`~context_builder.session.messages.message_index`; what is here says so by id.
"""

from __future__ import annotations

from dataclasses import field

from context_builder.session.messages.reference import MessageReference
from context_builder.tracing import TraceContext
from context_builder.values import value


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
