"""The commands of the terminal; each module holds one, thin over the app."""

from __future__ import annotations

from typing import Annotated

import typer

from context_builder import __version__
from context_builder.cli.build import build
from context_builder.cli.cost import cost
from context_builder.cli.dead import dead
from context_builder.cli.demo import demo
from context_builder.cli.diff import diff
from context_builder.cli.doctor import doctor
from context_builder.cli.end import end
from context_builder.cli.engines import engines
from context_builder.cli.explain import explain_command
from context_builder.cli.forget import forget
from context_builder.cli.local_model import local_model
from context_builder.cli.migrate import migrate
from context_builder.cli.playback import replay_log
from context_builder.cli.replay import replay_command
from context_builder.cli.run import record, run_session
from context_builder.cli.send import send
from context_builder.cli.sessions import sessions
from context_builder.cli.settings import settings
from context_builder.cli.state import state
from context_builder.cli.watch import watch

app = typer.Typer(
    name="context-builder",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Live conversation memory: one process per conversation keeps its state in Redis.

    Start with [bold]context-builder demo[/], or [bold]context-builder run SESSION_ID[/] and, in another terminal,
    [bold]context-builder watch SESSION_ID[/]. Settings come from the environment and from .env;
    [bold]context-builder settings --env[/] lists them all.
    """
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


_LIVE, _LOOK, _KEEP = "While people talk", "Looking", "Keeping house"
for _name, _command, _panel in (
    ("run", run_session, _LIVE),
    ("record", record, _LIVE),
    ("demo", demo, _LIVE),
    ("send", send, _LIVE),
    ("replay", replay_command, _LIVE),
    ("end", end, _LIVE),
    ("watch", watch, _LOOK),
    ("state", state, _LOOK),
    ("explain", explain_command, _LOOK),
    ("build", build, _LOOK),
    ("replay-log", replay_log, _LOOK),
    ("diff", diff, _LOOK),
    ("cost", cost, _LOOK),
    ("sessions", sessions, _LOOK),
    ("doctor", doctor, _LOOK),
    ("dead", dead, _KEEP),
    ("forget", forget, _KEEP),
    ("engines", engines, _KEEP),
    ("local-model", local_model, _KEEP),
    ("migrate", migrate, _KEEP),
    ("settings", settings, _KEEP),
):
    app.command(_name, rich_help_panel=_panel)(_command)

COMMANDS = frozenset(command.name for command in app.registered_commands)
