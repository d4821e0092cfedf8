"""``correct``, ``rename-speaker``, ``strike``: what was said is changed afterwards, wherever it is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from context_builder.cli.command import SESSION_ID, confirm, existing, legible, run, settings_for
from context_builder.cli.signals import stopping_signals, within_grace
from context_builder.errors import MessageError, StoreError, StoreUnavailable
from context_builder.session.client import SessionClient
from context_builder.session.messages.revision import MessageReference, read_reference

if TYPE_CHECKING:
    from context_builder.session.session import Session
    from context_builder.wiring.app import App

MESSAGE = Annotated[str, typer.Argument(help="Number of the message, or its id as id:12.", show_default=False)]

LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at how far the session is."""

PATIENCE: Final = 15.0
"""Seconds that archive and memory may take to follow."""

Revise = Callable[[SessionClient], Awaitable[None]]


def correct(
    session_id: SESSION_ID,
    message: MESSAGE,
    text: Annotated[str | None, typer.Argument(help="The right words; default: unchanged.", callback=legible)] = None,
    speaker: Annotated[
        str | None, typer.Option("--speaker", "-s", help="Who said it.", show_default=False, callback=legible)
    ] = None,
) -> None:
    """Correct a message: its words, its speaker, or both. Summary, memory, archive and prompts follow.

    Examples:

        context-builder correct monday 5 "The pump costs fifty thousand euros."

        context-builder correct monday 5 --speaker Ida
    """
    if text is None and speaker is None:
        raise typer.BadParameter("say what was said, or with --speaker who said it")
    reference = _reference(message)
    run(_revise(session_id, reference, lambda client: client.correct(reference, text=text, speaker=speaker)))
    typer.echo(f"Corrected {reference} of session {session_id}.")


def rename_speaker(
    session_id: SESSION_ID,
    old: Annotated[str, typer.Argument(help="What the speaker is called now.", show_default=False, callback=legible)],
    new: Annotated[str, typer.Argument(help="The name to call them.", show_default=False, callback=legible)],
) -> None:
    """Rename a speaker, in everything said so far and from now on.

    Example:

        context-builder rename-speaker monday "Speaker 2" Ida
    """
    run(_revise(session_id, None, lambda client: _rename(client, old, new)))
    typer.echo(f"{old} is {new} in session {session_id}.")


def strike(
    session_id: SESSION_ID,
    message: MESSAGE,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Strike a message that was off the record: nothing of it is left anywhere, and it does not come back.

    Points of the summary that rest on it go with it, and so does a recording of the session up to now.

    Example:

        context-builder strike monday 5 --yes
    """
    reference = _reference(message)
    confirm(f"Delete {reference} of session {session_id} everywhere, for good?", yes=yes)
    run(_revise(session_id, reference, lambda client: client.strike(reference)))
    typer.echo(f"Nothing is left of {reference} of session {session_id}.")


def _reference(message: str) -> MessageReference:
    try:
        return read_reference(message, "MESSAGE")
    except MessageError as error:
        raise typer.BadParameter(str(error)) from None


async def _revise(session_id: str, reference: MessageReference | None, revise: Revise) -> None:
    """Push a revision, and wait until everything follows; where nobody runs the session, that is done here."""
    from context_builder import log
    from context_builder.wiring.app import open_app

    settings = await settings_for(session_id)
    log.configure("warning", settings.process.log_format)
    async with open_app(settings) as app:
        await existing(app.redis, session_id)
        client = SessionClient(app.redis, session_id)
        try:
            if reference is not None:
                await _check(client, reference)
            await revise(client)
        except MessageError as error:
            raise StoreError(str(error)) from None
        if await client.owner() is not None:
            await _followed(app, session_id)
            return
        session = app.session(session_id)
        with stopping_signals(session.stop):
            running = asyncio.create_task(within_grace(session.serve(), session.told_to_stop), name="session")
            try:
                await _done_here(client, session, running)
            finally:
                session.stop()
                await running


async def _rename(client: SessionClient, old: str, new: str) -> None:
    if not await client.has_spoken(old) and not await client.waiting():
        typer.echo(f"Nobody called {old} has spoken yet; whoever does is called {new}.", err=True)
    await client.rename_speaker(old, new)


async def _check(client: SessionClient, reference: MessageReference) -> None:
    held = await client.held_message(reference)
    if held == "struck":
        raise StoreError(f"{reference} of session {client.session_id} was struck: nothing is left of it")
    if held == "unknown" and not await client.waiting():
        raise StoreError(f"session {client.session_id} has no {reference}; `context-builder watch` shows their numbers")


async def _followed(app: App, session_id: str) -> None:
    """Wait until whoever runs the session has applied what was pushed, and archive and memory have been told."""
    from context_builder.session.store.registry import SessionRegistry

    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = await SessionRegistry(app.redis).find(session_id)
        if found is None or not (found.waiting or found.undelivered or found.unremembered):
            return
        await asyncio.sleep(LOOK_AGAIN)
    raise StoreUnavailable(_late(session_id))


async def _done_here(client: SessionClient, session: Session, running: asyncio.Task[None]) -> None:
    until = time.monotonic() + PATIENCE
    while not running.done() and time.monotonic() < until:
        if session.ready.is_set() and not await client.waiting() and session.relays.are_done:
            return
        await asyncio.sleep(LOOK_AGAIN)
    if not running.done():
        raise StoreUnavailable(_late(client.session_id))


def _late(session_id: str) -> str:
    return (
        f"session {session_id} knows, but what is stored of it is not all changed yet; "
        "that follows once archive and memory answer again"
    )
