"""``backup`` and ``restore``: everything that sessions and database hold, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from context_builder.cli.command import confirm, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import counted


def backup(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.", show_default=False)],
) -> None:
    """Write all sessions and the whole database to one file, while everything keeps running.

    The file contains what people said, and hashes of API keys, so only its owner may read it. It contains the sessions
    of every server in REDIS_URLS, archive, memory, documents, packages with their audit record, and policies, but not
    recordings and SomaBrain's data. With Supabase, set DATABASE_URL to the address of the project's database.

    Examples:

        context-builder backup monday.backup

        context-builder backup "backups/$(date +%F).backup"
    """
    run(_backup(file))
    typer.echo(f"Wrote {plain(file)}, {file.stat().st_size:,} bytes; only you can read it.")


async def _backup(file: Path) -> None:
    from context_builder.backup.backup import back_up
    from context_builder.wiring.database import owners_url
    from context_builder.wiring.servers import open_servers

    settings = settings_in_force()
    url = await owners_url(settings)
    async with open_servers(settings) as servers:
        await back_up(file, servers, url, _tell)


def restore(
    file: Annotated[Path, typer.Argument(help="File that `backup` wrote.", show_default=False)],
    force: Annotated[
        bool, typer.Option("--force", help="Replace this package's data in Redis and the database for good.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --force: do not ask.")] = False,
) -> None:
    """Restore a backup into an empty Redis and an empty database.

    The command first reads and checks the whole file; if the file is damaged, incomplete, or written by a newer
    version, it changes nothing. A backup of an older version is restored and then migrated. Afterwards
    `context-builder run`, or a fleet, continues each session. Processes that ran a session before can no longer write
    to it.

    Examples:

        context-builder restore monday.backup

        context-builder restore monday.backup --force
    """
    if force:
        confirm("Replace everything that this Redis and this database hold of ours?", yes=yes)
    run(_restore(file, force=force))


async def _restore(file: Path, *, force: bool) -> None:
    from context_builder.backup.backup import restore as restored_from
    from context_builder.wiring.database import owners_url
    from context_builder.wiring.servers import open_servers

    settings = settings_in_force()
    url = await owners_url(settings)
    async with open_servers(settings) as servers:
        restored = await restored_from(file, servers, url, _tell, force=force)
    typer.echo(f"Restored {counted(restored.sessions, 'session')} and {counted(restored.rows, 'row')}.")
    if restored.migrations:
        typer.echo(f"Applied {', '.join(restored.migrations)}.")


def _tell(what: str) -> None:
    typer.echo(f"  {what}", err=True)
