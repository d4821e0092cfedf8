"""``record``: ``run``, with all that happens kept in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from context_builder.cli.command import SESSION_ID, run, settings_in_force
from context_builder.cli.run import NO_WAIT, TAKEOVER, serve


def record(
    session_id: SESSION_ID,
    file: Annotated[
        Path | None,
        typer.Argument(help="Where; in RECORD_DIR or here, SESSION_ID.jsonl.", dir_okay=False, show_default=False),
    ] = None,
    takeover: TAKEOVER = False,
    no_wait: NO_WAIT = False,
) -> None:
    """Run a conversation like `run`, and keep all that happens in a file, to replay-log and diff.

    What people say is in it. A file that is there already is continued.

    Examples:

        context-builder record session-123

        context-builder record session-123 monday.jsonl --takeover
    """
    run(_record(session_id, file, takeover=takeover, wait=not no_wait), interrupted=0)


async def _record(session_id: str, file: Path | None, *, takeover: bool, wait: bool) -> None:
    from context_builder.session.keys import validate_session_id
    from context_builder.wiring.app import recording_of

    validate_session_id(session_id)
    file = file or recording_of(session_id, settings_in_force()) or Path(f"{session_id}.jsonl")
    await serve(session_id, file, takeover=takeover, wait=wait)
