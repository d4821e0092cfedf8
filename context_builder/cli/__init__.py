"""The commands of the terminal; each module holds one, thin over the app.

Each imports what it works with where it does: `--help`, a wrong option and the short commands start without the rest,
which takes up to a second.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from context_builder import __version__
from context_builder.errors import ContextBuilderError

_LIVE, _LOOK, _KEEP = "While people talk", "Looking", "Keeping house"
COMMANDS: Final = {
    "run": ("run", "run_session", _LIVE),
    "record": ("run", "record", _LIVE),
    "demo": ("demo", "demo", _LIVE),
    "send": ("send", "send", _LIVE),
    "replay": ("replay", "replay_command", _LIVE),
    "listen": ("listen", "listen", _LIVE),
    "fleet": ("fleet", "fleet", _LIVE),
    "correct": ("corrections", "correct", _LIVE),
    "rename-speaker": ("corrections", "rename_speaker", _LIVE),
    "strike": ("corrections", "strike", _LIVE),
    "end": ("end", "end", _LIVE),
    "serve": ("serve", "serve", _LIVE),
    "mcp": ("mcp", "mcp", _LIVE),
    "watch": ("watch", "watch", _LOOK),
    "state": ("state", "state", _LOOK),
    "explain": ("explain", "explain_command", _LOOK),
    "build": ("build", "build", _LOOK),
    "replay-log": ("playback", "replay_log", _LOOK),
    "cost": ("cost", "cost", _LOOK),
    "sessions": ("sessions", "sessions", _LOOK),
    "doctor": ("doctor", "doctor", _LOOK),
    "package": ("package", "package", _LOOK),
    "search": ("search", "search", _LOOK),
    "outcomes": ("outcomes", "outcomes", _LOOK),
    "ingest": ("ingest", "ingest", _KEEP),
    "policy": ("policy", "policy", _KEEP),
    "keys": ("keys", "keys", _KEEP),
    "audit": ("audit", "audit", _KEEP),
    "dead": ("dead", "dead", _KEEP),
    "forget": ("forget", "forget", _KEEP),
    "init": ("init", "init", _KEEP),
    "engines": ("engines", "engines", _KEEP),
    "migrate": ("migrate", "migrate", _KEEP),
    "backup": ("backup", "backup", _KEEP),
    "restore": ("backup", "restore", _KEEP),
    "settings": ("settings", "settings", _KEEP),
}
"""Of each command: the module here that holds it, its function or group, and in which part of the help it stands."""


class _LoadedCommands(Mapping[str, Any]):
    """Loads a command's module when the command is asked for: one that is to be quick does not load all others."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        return load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def load(name: str) -> Any:
    """Return a command, its module loaded."""
    module, function, panel = COMMANDS[name]
    command = getattr(import_module(f"{__name__}.{module}"), function)
    if isinstance(command, typer.Typer):
        return _group(name, command, panel)
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, help=_unwrapped(command.__doc__), rich_help_panel=panel)(command)
    return _without_types_of_flags(get_command(alone))


def _without_types_of_flags(command: Any) -> Any:
    """Return the command, whose help names no type beside its flags, as if a value followed them."""
    for one in command.params:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return command


def _group(name: str, commands: typer.Typer, panel: str) -> Any:
    for one in commands.registered_commands:
        one.help = _unwrapped((one.callback and one.callback.__doc__) or "")
    group: Any = get_command(commands)
    for one in group.commands.values():
        _without_types_of_flags(one)
    group.name = name
    group.rich_help_panel = panel
    alone = commands.registered_callback  # what the group does without a command of its own
    if alone is not None and alone.callback is not None and alone.callback.__doc__:
        group.help = _unwrapped(alone.callback.__doc__)
    return group


def _listed(name: str) -> Any:
    """Return what the help lists of a command: its name, its part and what it does. Groups are loaded for that."""
    module, function, panel = COMMANDS[name]
    for node in ast.parse(Path(__file__).with_name(f"{module}.py").read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return TyperCommand(name, help=_unwrapped(ast.get_docstring(node) or ""), rich_help_panel=panel)
    return load(name)


def _unwrapped(docstring: str) -> str:
    """Return the docstring with each paragraph in one line, for terminals of any width; examples stay indented."""
    paragraphs = cleandoc(docstring).split("\n\n")
    first, *others = [one if one.startswith(" ") else one.replace("\n", " ") for one in paragraphs]
    # The blank line more keeps the indentation: typer dedents what follows the first paragraph, but for its first line.
    return "\n\n".join([first, "\n" + others[0], *others[1:]] if others else [first])


_UsageError: type[Exception] = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""``ClickException``, which typer exports under no name of its own."""


def _told(error: Any) -> str:
    """Return in one line what is wrong with a command line, and where its help is."""
    from context_builder.cli.view.palette import plain

    message = plain(error.format_message()).removeprefix("Invalid value: ").replace(": Value error, ", ": ").rstrip(".")
    help_command = f"`{error.ctx.command_path} --help`" if getattr(error, "ctx", None) else ""
    if not message or not help_command:
        return message
    return f"{message[0].lower()}{message[1:]}{' See' if message.endswith('?') else '; see'} {help_command}"


class _Commands(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": _LoadedCommands()})

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **options: Any) -> Any:  # type: ignore[override]
        """Run the program; a wrong use is told in a line, as every other error is, and not in a box."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **options)
        try:
            status = super().main(args, standalone_mode=False, **options)
            sys.exit(status if isinstance(status, int) else 0)
        except typer.Abort:
            typer.echo("context-builder: aborted", err=True)
            sys.exit(1)
        except _UsageError as error:
            if message := _told(error):  # a group without a command has shown its help
                typer.echo(f"context-builder: {message}", err=True)
            sys.exit(getattr(error, "exit_code", 2))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what it raises before its own work begins, such as a missing extra, is a line as well."""
        try:
            return super().invoke(ctx)
        except ContextBuilderError as error:
            from context_builder.cli.command import told

            raise typer.Exit(told(error)) from None

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return [*self.commands]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, whose line of each command is read from its source: loading all of them takes a second."""
        self.commands = {name: _listed(name) for name in COMMANDS}
        super().format_help(ctx, formatter)


app = typer.Typer(
    name="context-builder",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Live conversation memory: one process per conversation keeps its state in Redis.

    Start with [bold]context-builder demo[/], or [bold]context-builder run SESSION_ID[/] and, in
    another terminal, [bold]context-builder watch SESSION_ID[/]. Settings come from the
    environment and from .env; [bold]context-builder settings --env[/] lists them all.
    """
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
