"""``dead``: what could not become a message, and what archive or memory refuse for good."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from context_builder.cli.command import SESSION_ID, print_json, redis_with, run
from context_builder.cli.view.palette import plain
from context_builder.errors import ContextBuilderError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from context_builder.session.store.dead_letters import DeadLetter, DeadLetters, Origin

EXCERPT: Final = 60
"""Characters of a delivery that the list shows."""

BESIDE_EXCERPT: Final = 64
"""Columns that number, time, a short reason and size take beside it."""


class DeadLetterAction(StrEnum):
    """What to do with dead letters."""

    LIST = "list"
    SHOW = "show"
    REQUEUE = "requeue"


def dead(
    session_id: SESSION_ID,
    verb: Annotated[DeadLetterAction, typer.Argument(help="list, show or requeue")] = DeadLetterAction.LIST,
    which: Annotated[
        str, typer.Argument(help="Number from the list: 2, archive:1, all, memory:all.", show_default=False)
    ] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Show the original bytes, not escaped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs; the bytes as base64.")] = False,
) -> None:
    """Show undeliverable messages and entries with the reason, or requeue them.

    These are deliveries that could not become messages, and entries that the archive or the long-term memory refuses
    for good.

    A requeued item is tried again: a delivery becomes a message if the reason is gone, such as after a larger
    MAX_MESSAGE_BYTES; a summary is archived if the archive now accepts it. Otherwise the item comes back here.

    Examples:

        context-builder dead session-123

        context-builder dead session-123 show 2

        context-builder dead session-123 requeue archive:1

        context-builder dead session-123 requeue all
    """
    run(_dead(session_id, verb, which, raw=raw, as_json=json))


async def _dead(session_id: str, verb: DeadLetterAction, which: str, *, raw: bool, as_json: bool) -> None:
    from context_builder.session.store.dead_letters import ORIGINS, DeadLetters

    async with redis_with(session_id) as redis:
        lists = {origin: DeadLetters(redis, session_id, origin) for origin in ORIGINS}
        chosen = await _chosen(lists, verb, which)
        if not chosen and (verb is DeadLetterAction.REQUEUE or not as_json):
            typer.echo(f"Session {session_id} has no dead letters.")
        elif verb is DeadLetterAction.REQUEUE:
            for origin, letters in lists.items():
                await _requeue(letters, session_id, [one for one in chosen if one.origin == origin], origin)
            await _tell_who_delivers(redis, session_id, chosen)
        elif as_json:
            print_json([{"number": one.number, "origin": one.origin, **one.letter.as_json()} for one in chosen])
        elif verb is DeadLetterAction.LIST:
            _print_list(chosen)
        else:
            for one in chosen:
                _show(one, raw=raw)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A dead letter, and its number among those of its origin."""

    origin: Origin
    number: int
    letter: DeadLetter

    @property
    def name(self) -> str:
        """Return the letter's name in the list and on the command line."""
        return str(self.number) if self.origin == "input" else f"{self.origin}:{self.number}"

    @property
    def content(self) -> bytes:
        return self.letter.content(self.origin)

    @property
    def begins(self) -> str:
        """Return the beginning of the letter's text where it can be read, else of its content."""
        return self.letter.begins(self.origin, 4 * EXCERPT)


async def _chosen(lists: Mapping[Origin, DeadLetters], verb: DeadLetterAction, which: str) -> list[Numbered]:
    name, _, number = which.rpartition(":")
    named = [origin for origin in lists if origin == (name or "input")]
    if verb is DeadLetterAction.LIST or which == "all":
        return [one for origin, letters in lists.items() for one in await _all(origin, letters)]
    if named and number == "all":
        return await _all(named[0], lists[named[0]])
    if named and number.isascii() and number.isdigit():
        return [Numbered(named[0], int(number), await lists[named[0]].get(int(number)))]
    raise ContextBuilderError(f"say which to {verb}: a number from the list, or all")


async def _all(origin: Origin, letters: DeadLetters) -> list[Numbered]:
    return [Numbered(origin, number, letter) for number, letter in enumerate(await letters.all(), start=1)]


async def _requeue(letters: DeadLetters, session_id: str, chosen: list[Numbered], origin: Origin) -> None:
    if not chosen:
        return
    moved, kept = 0, []
    for one in chosen:
        if one.letter.is_whole or len(chosen) == 1:
            moved += await letters.requeue(one.letter)
        else:
            kept.append(one.name)
    where = "into the input" if origin == "input" else f"among what waits for the {origin}"
    typer.echo(f"Put back {moved} of {len(chosen)} {where} of session {session_id}.")
    if kept:
        typer.echo(f"Too large to have been kept whole: {', '.join(kept)}.")


async def _tell_who_delivers(redis: Redis, session_id: str, chosen: list[Numbered]) -> None:
    from context_builder.session.store.registry import SessionRegistry

    if any(one.origin != "input" for one in chosen) and await SessionRegistry(redis).owner(session_id) is None:
        typer.echo(f"Nobody runs the session now: `context-builder end {session_id}`, or its next run, delivers it.")


def _print_list(chosen: list[Numbered]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("", justify="right", min_width=4, no_wrap=True)
    table.add_column("when", no_wrap=True, min_width=19)
    table.add_column("reason")
    table.add_column("bytes", justify="right", min_width=6)
    table.add_column("begins", no_wrap=True)
    console = Console()
    excerpt = min(EXCERPT, max(console.width - BESIDE_EXCERPT, 12))
    for one in chosen:
        letter = one.letter
        when = datetime.fromtimestamp(letter.time).strftime("%Y-%m-%d %H:%M:%S") if letter.time else "–"
        begins = Text(plain(one.begins, excerpt))
        table.add_row(one.name, when, Text(plain(letter.reason)), f"{letter.size:,}", begins)
    console.print(table)


def _show(one: Numbered, *, raw: bool) -> None:
    letter = one.letter
    if raw:
        sys.stdout.buffer.write(letter.raw)
        sys.stdout.buffer.flush()
        return
    typer.echo(f"{one.name}: {plain(letter.reason)}", err=True)
    typer.echo(escaped(one.content))
    if not letter.is_whole:
        typer.echo(f"… the first {len(letter.raw):,} of {letter.size:,} bytes", err=True)


def escaped(raw: bytes) -> str:
    """Return ``raw`` as one line, with what is not printable text escaped as ``\\x1b`` or ``\\u202e``."""
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
