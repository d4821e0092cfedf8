"""A command that ends by itself, in the tests' own process, which takes a tenth of the time of another process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from typer.testing import CliRunner, Result

from context_builder.cli import app


def command(folder: Path, *arguments: str, **settings: object) -> Result:
    """What ``context-builder ARGUMENTS`` prints and ends with; its home is in ``folder``."""
    chosen = {name.upper(): str(value) for name, value in settings.items()}
    home = {"CONTEXT_BUILDER_HOME": str(folder / "home"), "EMBEDDED_EMBEDDINGS": "false", "COLUMNS": "200"}
    return command_in(home | chosen, *arguments)


def command_in(environ: Mapping[str, str], *arguments: str) -> Result:
    """The same with these variables; an error that nobody answers is raised.

    Where a loop runs, it cannot be a command that answers signals: ``run``, ``end`` or ``serve``.
    """

    def invoked() -> Result:
        return CliRunner().invoke(app, arguments, env=environ, catch_exceptions=False)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return invoked()
    with ThreadPoolExecutor(1) as beside:  # where a loop runs, no other one may
        return beside.submit(invoked).result()
