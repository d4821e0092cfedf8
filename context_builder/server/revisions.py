"""Corrections, renames and strikes as the doors of the server take them: a :class:`Problem` tells what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from context_builder.errors import MessageError
from context_builder.knowledge.governance import Access
from context_builder.server.problem import Missing, Problem, not_found
from context_builder.server.seen_session import SeenSession
from context_builder.session.client import SessionClient
from context_builder.session.messages.message import Delivered, Message
from context_builder.session.messages.revision import MessageReference, read_reference

MASKED: Final = "you are not shown all of that message, and only who sees the words may correct them"


async def correct_message(
    client: SessionClient, seen: SeenSession, message: str, text: str | None, speaker: str | None
) -> None:
    """Correct a message of a session, by number or id; 403 for words, or a speaker, that the caller sees masked."""
    with _told():
        reference = await _existing(client, message)
        if seen.is_redacted:
            await _check_unmasked(seen, await client.id_of(reference), text, speaker)
        await client.correct(reference, text=text, speaker=speaker)


async def check_corrections(client: SessionClient, seen: SeenSession, delivered: Sequence[Delivered]) -> None:
    """Refuse messages that would correct what the caller sees masked (403), or may not see at all (404): those with
    ``corrects``, and other words of a number and a timestamp that are there, or wait to be taken in.
    """
    if not seen.is_redacted:
        return
    messages = [one for one in delivered if isinstance(one, Message)]
    is_unsure = any(one.corrects for one in messages) and await client.waiting()  # before others are taken in
    waiting = await client.corrects_waiting(messages)  # likewise
    with _told():
        places = await client.replaced_by(messages)
    if seen.access is Access.DENIED and (any(waiting) or any(place is not None for place in places)):
        raise not_found()
    for message, place, waits in zip(messages, places, waiting, strict=True):
        if place is not None or waits or (message.corrects and is_unsure):
            await _check_unmasked(seen, place, message.text or None, message.speaker or None)


async def _check_unmasked(seen: SeenSession, place: int | None, text: str | None, speaker: str | None) -> None:
    unmasked = {} if place is None else await seen.unmasked(place - 1, 1)
    changed = {name for name, value in (("text", text), ("speaker", speaker)) if value is not None}
    if place is None or not changed <= unmasked.get(place, frozenset()):
        raise Problem(403, "masked", MASKED)


async def strike_message(client: SessionClient, message: str) -> None:
    """Strike a message of a session, by number or id."""
    with _told():
        await client.strike(await _existing(client, message))


async def rename_speaker(client: SessionClient, old: str, new: str) -> None:
    """Call a speaker of a session otherwise."""
    if not await client.is_known():
        raise not_found()
    with _told():
        await client.rename_speaker(old, new)


async def _existing(client: SessionClient, message: str) -> MessageReference:
    """Return the reference to a message that is there, or waits to be taken in."""
    reference = read_reference(message, "message")
    held = await client.held_message(reference)
    if held == "struck" or (held == "unknown" and not await client.waiting()):
        raise not_found(Missing.MESSAGE)
    return reference


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except MessageError as error:
        raise Problem(422, "invalid_message", str(error)) from None
