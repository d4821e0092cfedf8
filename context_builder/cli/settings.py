"""``settings``: what is in force."""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from context_builder.cli.command import run

CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")
"""In a URL that is no secret as a whole."""


def settings(
    env: Annotated[bool, typer.Option("--env", help="Print .env.example: every setting and its default.")] = False,
) -> None:
    """Show the settings in force, secrets masked.

    [bold]Examples[/]

      context-builder settings

      context-builder settings --env > .env
    """
    run(_settings(as_example=env))


async def _settings(*, as_example: bool) -> None:
    from context_builder.settings import Settings, example_env, load_settings

    if as_example:
        typer.echo(example_env(), nl=False)
        return
    loaded = load_settings()
    for name in Settings.model_fields:
        value = getattr(loaded, name)
        shown = "" if value is None else CREDENTIALS.sub("//**********@", str(value))
        typer.echo(f"{name.upper():<32} {shown}")
