"""``migrate``: the archive's tables."""

from __future__ import annotations

from typing import Annotated

import typer

from context_builder.cli.command import run, settings_in_force


def migrate(
    show: Annotated[bool, typer.Option("--print", help="Print the SQL, for Supabase's SQL editor.")] = False,
) -> None:
    """Create or upgrade the archive's tables at DATABASE_URL or in the embedded PostgreSQL.

    Supabase takes SQL only through its own editor or its database's address:
    paste what --print prints there, or set DATABASE_URL to that address for
    this command. May be run any number of times.

    Examples:

        context-builder migrate

        context-builder migrate --print | pbcopy
    """
    run(_migrate(show=show))


async def _migrate(*, show: bool) -> None:
    from context_builder.database.migrations import apply, render, retain
    from context_builder.wiring.database import owners_url

    if show:
        typer.echo(render())
        return
    settings = settings_in_force()
    url = await owners_url(settings, "use `migrate --print`")
    applied = await apply(url)
    await retain(url, settings.record.retention)
    typer.echo(
        "\n".join(f"applied {name}" for name in applied) if applied else "Nothing to do: the tables are up to date."
    )
