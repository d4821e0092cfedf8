"""``forget``: delete a session everywhere."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from context_builder.cli.command import run
from context_builder.cli.run import SESSION_ID


def forget(
    session_id: SESSION_ID,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a session everywhere: what waits, what is remembered, what is archived.

    [bold]Example[/]

      context-builder forget session-123 --yes
    """
    if not yes:
        typer.confirm(f"Delete everything about session {session_id}, for good?", abort=True)
    run(_forget(session_id))


async def _forget(session_id: str) -> None:
    from context_builder.app import open_archive, open_redis, recording_of
    from context_builder.recording.file import delete
    from context_builder.session.catalog import Catalog
    from context_builder.session.keys import validate_session_id
    from context_builder.settings import load_settings

    settings = load_settings()
    validate_session_id(session_id)
    async with open_redis(settings) as redis, open_archive(settings) as archive:
        catalog = Catalog(redis)
        rows = await archive.forget(session_id)  # first: if it is away, nothing is deleted yet
        was_run = await catalog.owner(session_id) is not None
        keys = await catalog.forget(session_id)
        if was_run:  # its owner notices with its next commit; until then it may still deliver a summary
            await asyncio.sleep(2 * settings.poll_interval)
            rows += await archive.forget(session_id)
        recording = recording_of(session_id, settings)
        if recording and delete(recording):
            typer.echo(f"Deleted the recording {recording}.")
    typer.echo(f"Forgot session {session_id}: {keys} Redis keys and {rows} archived summaries deleted.")
