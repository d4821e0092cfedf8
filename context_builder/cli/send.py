"""``send``: one message into a session, by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from context_builder.cli.command import connected, legible, run, session_ids, settings_in_force
from context_builder.session.client import SessionClient, contributed, spoken


def send(
    session_id: Annotated[
        str, typer.Argument(help="Session that receives the message.", show_default=False, autocompletion=session_ids)
    ],
    text: Annotated[str, typer.Argument(help="Text of the message.", show_default=False, callback=legible)],
    speaker: Annotated[str, typer.Option("--speaker", "-s", help="Name of the speaker.", callback=legible)] = "Unknown",
    consilience: Annotated[
        bool, typer.Option("--consilience", help="Send it as the assistant's own contribution.")
    ] = False,
) -> None:
    """Send one message to a session.

    The message waits in the session's queue until a process runs the session.

    Examples:

        context-builder send monday "How deep is the mooring?" --speaker Alice

        context-builder send monday "From a Biology perspective ..." --consilience
    """
    if not text.strip():
        raise typer.BadParameter("there is nothing to say in a blank text")
    run(_send(session_id, text, None if consilience else speaker))


async def _send(session_id: str, text: str, speaker: str | None) -> None:
    from context_builder import log
    from context_builder.wiring.tracing import sending_spans

    settings = settings_in_force()
    log.configure("warning", settings.process.log_format)
    async with sending_spans(settings, "send"), connected(session_id) as client:
        typer.echo(await say(client, text, speaker))


async def say(client: SessionClient, text: str, speaker: str | None) -> str:
    """Push one message, the assistant's when there is no ``speaker``, and return a line about it."""
    now = datetime.now()
    if speaker is None:
        await client.push(contributed(text, now))
        outcome = "sent as Consilience"
    else:
        number = await client.next_number()
        await client.push(spoken(client.session_id, number, speaker, text, now))
        outcome = f"sent as message {number}"
    if await client.owner() is None:
        outcome += f"; nobody runs {client.session_id} now, it waits for: context-builder run {client.session_id}"
    return outcome
