"""Corrections, renames and strikes as the doors of the server take them: a :class:`Problem` tells what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from context_builder.errors import MessageError
from context_builder.server.problem import Missing, Problem, not_found
from context_builder.session.client import SessionClient
from context_builder.session.messages.reference import MessageReference, read_reference


async def correct_message(client: SessionClient, message: str, text: str | None, speaker: str | None) -> None:
    """Correct a message of a session, by number or id."""
    with _told():
        reference = await _existing(client, message)
        await client.correct(reference, text=text, speaker=speaker)


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
