"""``settings``: what is in force."""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from context_builder.cli.command import JsonFlag, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain

CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")
"""In a URL that is not a secret as a whole."""


def settings(
    env: Annotated[bool, typer.Option("--env", help="Print .env.example: every setting and its default.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the settings in force, secrets masked.

    Examples:

        context-builder settings

        context-builder settings --env > .env

        context-builder settings --json | jq -r .REDIS_PORT
    """
    run(_settings(as_example=env, as_json=as_json))


def example_env() -> str:
    """Return the text of ``.env.example``: every setting with its default, its unit and why it is there."""
    from context_builder.settings.settings import PREFIX, definitions

    lines = [
        "# Every setting, with its default and its unit. Copy this file to .env and set what you need.",
        f"# Each may also be given with the prefix {PREFIX}, which wins over the plain name.",
    ]
    for name, one in definitions().items():
        lines += ["", f"# {one.description}", f"#{name}={'' if one.default is None else one.default}"]
    return "\n".join(lines) + "\n"


async def _settings(*, as_example: bool, as_json: bool) -> None:
    if as_example:
        typer.echo(example_env(), nl=False)
        return
    shown = {name: _masked(value) for name, value in settings_in_force().by_name().items()}
    if as_json:
        print_json(shown)
        return
    for name, value in shown.items():
        typer.echo(f"{name:<32} {'' if value is None else plain(value)}")


def _masked(value: object) -> object:
    """Return the value as JSON has it; secrets are masked already, but for those within a URL."""
    return CREDENTIALS.sub("//**********@", value) if isinstance(value, str) else value
