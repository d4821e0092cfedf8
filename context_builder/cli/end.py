"""``end``: summarize and archive what remains, and close the session."""

from __future__ import annotations

import typer

from context_builder.cli.command import SESSION_ID, existing, run, settings_for
from context_builder.cli.signals import stopping_signals, within_grace
from context_builder.cli.view.status import counted


def end(session_id: SESSION_ID) -> None:
    """Summarize, archive and remember the rest of a session, and close it; a new message opens it again.

    A process that runs the session is asked to do so; otherwise this command does it.

    Example:

        context-builder end session-123
    """
    run(_end(session_id))


async def _end(session_id: str) -> None:
    from context_builder import log
    from context_builder.errors import DatabaseUnavailable
    from context_builder.session.store.registry import SessionRegistry
    from context_builder.wiring.app import open_app

    settings = await settings_for(session_id)
    log.configure("warning", settings.process.log_format)
    async with open_app(settings) as app:
        await existing(app.redis, session_id)
        session = app.session(session_id)
        session.end()
        if await SessionRegistry(app.redis).request_end(session_id):
            typer.echo(f"Asked the process that runs session {session_id} to end it …")
        with stopping_signals(session.stop):
            await within_grace(session.serve(), session.told_to_stop)
        if session.told_to_stop.is_set():
            typer.echo(f"Session {session_id} is not ended; what was not summarized stays for the next run.")
            raise typer.Exit(1)
        if session.relays.undelivered:
            raise DatabaseUnavailable(_closed_but(session_id, session.relays.undelivered, "the archive"))
        if session.relays.unremembered:
            raise DatabaseUnavailable(_closed_but(session_id, session.relays.unremembered, "the long-term memory"))
        summary = session.conversation.summary
        kept = "archived" if app.dependencies.archive is not None else "made, kept in Redis"
        made = f"{counted(summary.message_count, 'message')}, {counted(summary.seq, 'summary')} {kept}"
        typer.echo(f"Session {session_id} is closed: {made}.")
        if refused := sum(session.conversation.undeliverable.values()):
            refusals = f"{counted(refused, 'entry')} refused for good since it began"
            typer.echo(f"{refusals}: `context-builder dead {session_id}`", err=True)


def _closed_but(session_id: str, waiting: int, receiver: str) -> str:
    return (
        f"session {session_id} is closed, but {counted(waiting, 'summary')} could not be delivered to {receiver}; "
        f"run `context-builder end {session_id}` when it is back (`context-builder doctor` looks)"
    )
