"""``sessions``: which there are, running and stored."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

import typer

from context_builder.cli.command import JsonFlag, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import FAILING
from context_builder.clock import ago
from context_builder.session.activity import activity_of
from context_builder.session.keys import SESSION_ID_RULE

if TYPE_CHECKING:
    from context_builder.session.servers import SessionsFound
    from context_builder.session.store.registry import RegisteredSession


_WIDE: Final = 80
"""Columns of a terminal from which it is told who runs a session, unless its id needs them."""

_NARROW: Final = 12
"""Columns that an id, what waits and who runs a session have at least."""

_HEADINGS: Final = ("session", "status", "last said", "messages", "waiting", "run by")
_COUNTED: Final = ("last said", "messages")
_GAP: Final = 2
"""Columns between two columns of the list."""

_UNBOUNDED: Final = 1_000
"""Columns of what is not a terminal, such as a pipe: each session is one line."""

_LINES: Final = 4
"""Lines that an id may take in a terminal; of one that needs more, its middle is left out."""


def sessions(json: JsonFlag = False) -> None:
    """List the sessions: who runs them, when somebody last spoke, how much is waiting.

    Problems are printed below the list, on standard error: model calls that fail, keys of a wrong type, ids that no
    session can have, and servers that do not answer.

    Example:

        context-builder sessions --json | jq '.[].session_id'
    """
    run(_sessions(as_json=json))


async def _sessions(*, as_json: bool) -> None:
    from context_builder.wiring.servers import open_servers

    async with open_servers(settings_in_force()) as servers:
        found = await servers.find_all()
    if as_json:
        print_json([session.as_json() for session in found.sessions])
    else:
        _print(found.sessions)
    for line in concerns(found):
        typer.echo(plain(line), err=True)


def concerns(found: SessionsFound) -> Iterator[str]:
    """Yield what is not as it should be, each in a line."""
    for session in found.sessions:
        if session.fault:
            yield f"session {session.session_id} stands still: {session.fault}; delete or rename the key"
    for why, names in _failing(found.sessions).items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"session {names[0]}{more}: {why}"
    for name in found.unusable:
        yield f"context_builder:{name}:input is read by nobody: a session id is {SESSION_ID_RULE}"
    for name, why in found.away.items():
        yield f"{name}: {why}; its sessions are not listed"


def _failing(listed: Sequence[RegisteredSession]) -> dict[str, list[str]]:
    """Return which of the sessions that are run lack something, by what that is and why."""
    found: dict[str, list[str]] = {}
    for session in listed:
        if session.owner is not None and (task := _failing_task(session)):
            reason = str(session.failing[task].get("reason") or "").rstrip(".")
            found.setdefault(f"{FAILING[task]}: {reason}" if reason else FAILING[task], []).append(session.session_id)
    return found


def _failing_task(session: RegisteredSession) -> str | None:
    """Return the most serious of the tasks that fail."""
    return next((task for task in FAILING if session.failing.get(task)), None)


def _print(listed: Sequence[RegisteredSession]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not listed:
        typer.echo("No sessions yet. Start one: context-builder run SESSION_ID, or context-builder demo")
        return
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNBOUNDED
    now = time.time()
    rows = [_row(session, now) for session in listed]
    longest, *others, waiting, _ = (max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True))
    rest = console.width - sum(others) - _GAP * (len(others) + 1)  # for the ids and what waits
    is_wide = console.width >= _WIDE and rest >= longest + waiting + _NARROW + _GAP
    room = min(longest, max(rest - min(waiting, _NARROW), _NARROW))
    widths = [room, *others, waiting if is_wide else min(waiting, max(rest - room, _NARROW))]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading, width in zip(_HEADINGS, widths, strict=False):
        justify: Literal["left", "right"] = "right" if heading in _COUNTED else "left"
        table.add_column(heading, width=width, justify=justify, overflow="fold")
    if is_wide:
        table.add_column(_HEADINGS[-1], no_wrap=True, overflow="ellipsis")
    for session_id, *told in rows:
        cells = [without_middle(session_id, _LINES * room), *told]
        table.add_row(*map(Text, cells[: len(table.columns)]))
    console.print(table)
    if longest > _LINES * room:
        typer.echo("Long ids are shortened here; --json prints them whole.", err=True)


def _row(session: RegisteredSession, now: float) -> tuple[str, ...]:
    from context_builder.session.store.lease import describe

    said = "–" if session.last_active is None else ago(session.last_active, now)
    owner = plain(describe(session.owner), 60) if session.owner else "–"
    return session.session_id, _status(session, now), said, str(session.messages), _waiting(session), owner


def without_middle(text: str, most: int) -> str:
    """Return at most ``most`` characters of a text, its beginning and its end."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def _status(session: RegisteredSession, now: float) -> str:
    if session.owner is not None and (task := _failing_task(session)):
        return FAILING[task]
    return activity_of(
        is_owned=session.owner is not None,
        is_asleep=session.asleep,
        has_ended=session.ended_at is not None,
        last_spoke=session.last_active if session.messages else None,
        waiting=session.waiting,
        now=now,
    )


def _waiting(session: RegisteredSession) -> str:
    """Return what waits, and for what; what could not be read or delivered is named as well."""
    to_deliver = session.undelivered + session.unremembered
    dead = session.dead_letters + sum(session.undeliverable.values())
    counts = {"unread": session.waiting, "to sum up": session.pending, "to deliver": to_deliver, "dead": dead}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "–"
