"""``sessions``: which there are, running and stored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import typer

from context_builder.cli.command import JsonFlag, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import FAILING
from context_builder.clock import ago
from context_builder.session.keys import SESSION_ID_RULE

if TYPE_CHECKING:
    from context_builder.session.servers import SessionsFound
    from context_builder.session.store.registry import RegisteredSession


_STATUS: Final = {"new": "not running", "stored": "not running"}
"""What people are told of each status, where that is another word; the page says the same."""

_WIDE: Final = 80
"""Columns of a terminal from which it is told who runs a session."""


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

    from context_builder.session.store.lease import describe

    if not listed:
        typer.echo("No sessions yet. Start one: context-builder run SESSION_ID, or context-builder demo")
        return
    console = Console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    is_wide = console.width >= _WIDE
    beside = 52 if is_wide else 38
    table.add_column("session", min_width=12, max_width=max(console.width - beside, 12), overflow="fold")
    table.add_column("status", no_wrap=True)
    for heading in ("last said", "messages"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("waiting", min_width=8)
    if is_wide:
        table.add_column("run by", no_wrap=True, overflow="ellipsis")
    for session in listed:
        owner = plain(describe(session.owner), 60) if session.owner else "–"
        table.add_row(
            Text(session.session_id),
            _status(session),
            "–" if session.last_active is None else ago(session.last_active, time.time()),
            str(session.messages),
            _waiting(session),
            *([Text(owner)] if is_wide else []),
        )
    console.print(table)


def _status(session: RegisteredSession) -> str:
    if session.asleep:
        return "asleep"
    if session.owner is not None and (task := _failing_task(session)):
        return FAILING[task]
    return _STATUS.get(session.status, session.status)


def _waiting(session: RegisteredSession) -> str:
    """Return what waits, and for what; what could not be read or delivered is named as well."""
    to_deliver = session.undelivered + session.unremembered
    dead = session.dead_letters + sum(session.undeliverable.values())
    counts = {"unread": session.waiting, "to sum up": session.pending, "to deliver": to_deliver, "dead": dead}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "–"
