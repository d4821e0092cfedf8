"""``dead``: deliveries that could not become messages."""

from __future__ import annotations

import sys
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from context_builder.cli.command import print_json, redis_with, run
from context_builder.cli.session_id import SESSION_ID
from context_builder.cli.view.plain import plain
from context_builder.errors import ContextBuilderError

if TYPE_CHECKING:
    from context_builder.session.dead_letters import DeadLetter, DeadLetters

EXCERPT: Final = 60
"""Characters of a delivery that the list shows."""


class Verb(StrEnum):
    """What to do with dead letters."""

    LIST = "list"
    SHOW = "show"
    REQUEUE = "requeue"


def dead(
    session_id: SESSION_ID,
    verb: Annotated[Verb, typer.Argument(help="list, show or requeue")] = Verb.LIST,
    which: Annotated[str, typer.Argument(help="Number in the list, or all.", show_default=False)] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Show the bytes as they came, not escaped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs; the bytes as base64.")] = False,
) -> None:
    """Show the deliveries that could not become messages, or put them back into the session's input.

    What is put back is read again: it becomes a message if the reason is gone, such as after a larger
    MAX_MESSAGE_BYTES, and is buried again otherwise.

    Examples:

        context-builder dead session-123

        context-builder dead session-123 show 2

        context-builder dead session-123 requeue all
    """
    run(_dead(session_id, verb, which, raw=raw, as_json=json))


async def _dead(session_id: str, verb: Verb, which: str, *, raw: bool, as_json: bool) -> None:
    from context_builder.session.dead_letters import DeadLetters

    async with redis_with(session_id) as redis:
        letters = DeadLetters(redis, session_id)
        chosen = await _chosen(letters, verb, which)
        if verb is Verb.REQUEUE:
            await _requeue(letters, session_id, chosen)
        elif as_json:
            print_json([{"number": number, **letter.as_json()} for number, letter in chosen.items()])
        elif verb is Verb.LIST:
            _print_list(session_id, chosen)
        else:
            for letter in chosen.values():
                _show(letter, raw=raw)


async def _chosen(letters: DeadLetters, verb: Verb, which: str) -> dict[int, DeadLetter]:
    if which == "all" or verb is Verb.LIST:
        return dict(enumerate(await letters.all(), start=1))
    if not (which.isascii() and which.isdigit()):
        raise ContextBuilderError(f"say which to {verb}: a number from the list, or all")
    return {int(which): await letters.get(int(which))}


async def _requeue(letters: DeadLetters, session_id: str, chosen: dict[int, DeadLetter]) -> None:
    moved, kept = 0, []
    for number, letter in chosen.items():
        if letter.is_whole or len(chosen) == 1:
            moved += await letters.requeue(letter)
        else:
            kept.append(str(number))
    typer.echo(f"Put back {moved} of {len(chosen)} into the input of session {session_id}.")
    if kept:
        typer.echo(f"Too large to have been kept whole: {', '.join(kept)}.")


def _print_list(session_id: str, letters: dict[int, DeadLetter]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not letters:
        typer.echo(f"Session {session_id} has no dead letters.")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("", justify="right", min_width=4)
    table.add_column("when", no_wrap=True, min_width=19)
    table.add_column("reason")
    table.add_column("bytes", justify="right", min_width=6)
    table.add_column("begins", no_wrap=True)
    for number, letter in letters.items():
        when = datetime.fromtimestamp(letter.time).strftime("%Y-%m-%d %H:%M:%S")
        begins = Text(plain(letter.raw[: 4 * EXCERPT].decode("utf-8", "replace"), EXCERPT))
        table.add_row(str(number), when, Text(plain(letter.reason)), f"{letter.size:,}", begins)
    Console().print(table)


def _show(letter: DeadLetter, *, raw: bool) -> None:
    if raw:
        sys.stdout.buffer.write(letter.raw)
        sys.stdout.buffer.flush()
        return
    typer.echo(escaped(letter.raw))
    if not letter.is_whole:
        typer.echo(f"… the first {len(letter.raw):,} of {letter.size:,} bytes", err=True)


def escaped(raw: bytes) -> str:
    """``raw`` as one line that draws nothing but itself: what is not printable text as ``\\x1b`` or ``\\u202e``."""
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
