"""``state``: what is published of a session, once."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from context_builder.cli.command import print_json, redis_with, run, session_ids, silence_threshold
from context_builder.cli.view.conversation import ConversationView, DomainBars, keyword_line
from context_builder.cli.view.palette import SpeakerColours
from context_builder.cli.view.published import Published
from context_builder.cli.view.status import SILENCE, figures, flow, running, silence_clock
from context_builder.cli.view.summary import SummaryView
from context_builder.errors import StoreError
from context_builder.session.client import JsonObject, SessionClient, Snapshot

NEWEST: Final = 10
"""Messages of the conversation's end that are shown."""


def state(
    session_id: Annotated[str, typer.Argument(help="Session to read.", show_default=False, autocompletion=session_ids)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the published JSON, for programs.")] = False,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Print only the conversation state that delivery monitors read.")
    ] = False,
) -> None:
    """Show a session's published state.

    The exit status is 1 if there is no published state, so scripts can test for it.

    Examples:

        context-builder state monday

        context-builder state monday --json | jq -r .rolling_summary.text
    """
    run(_state(session_id, Console(), as_json=as_json, conversation=conversation))


async def _state(session_id: str, console: Console, *, as_json: bool, conversation: bool) -> None:
    async with redis_with(session_id) as redis:
        client = SessionClient(redis, session_id)
        if as_json:
            print_json(await published(client, conversation=conversation))
        else:
            snapshot = await client.snapshot()
            shown = overview(
                snapshot, time.time(), console.width, conversation=conversation, silence_threshold=silence_threshold()
            )
            console.print(shown)


async def published(client: SessionClient, *, conversation: bool) -> JsonObject:
    """Return the JSON as published. Raises :class:`StoreError` when there is none."""
    found = await (client.conversation_state() if conversation else client.state())
    if found is None:
        raise _nothing(client.session_id, conversation=conversation)
    return found


def overview(
    snapshot: Snapshot,
    now: float,
    width: int,
    *,
    conversation: bool,
    run_by: Text | None = None,
    silence_threshold: float = SILENCE,
) -> RenderableType:
    """Return the state for people to read at epoch second ``now``, figures within ``width`` columns.

    ``run_by`` stands in for who runs the session, where that is not the question. Raises :class:`StoreError` when there
    is no state.
    """
    page = Published(snapshot)
    if not (page.ticking if conversation else page.known):
        raise _nothing(snapshot.session_id, conversation=conversation)
    about: list[RenderableType] = [
        silence_clock(page, now, silence_threshold),
        DomainBars(page.domains),
        keyword_line(page.keywords),
    ]
    if conversation:
        return Group(*about)
    colours = SpeakerColours()
    return Group(
        Text.assemble((page.session_id, "bold"), "  ", run_by or running(page, now)),
        *flow(figures(page, now, None), width, rows=3),
        *about,
        _heading("memory"),
        SummaryView(page.points, colours),
        _heading(f"newest of {len(page.messages):,} in the buffer"),
        ConversationView(page.messages[-NEWEST:], colours),
    )


def _heading(title: str) -> Rule:
    return Rule(Text(title, style="bold"), style="bright_black", align="left")


def _nothing(session_id: str, *, conversation: bool) -> StoreError:
    if conversation:
        return StoreError(f"session {session_id} has no conversation state: nobody runs it")
    return StoreError(
        f"session {session_id} has no state: it never ran, or its state has expired; "
        f"`context-builder run {session_id}` publishes it again"
    )
