"""``replay-log``: what was published of a recorded session at any instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.text import Text

from context_builder.cli.command import print_json, run
from context_builder.cli.state import overview
from context_builder.clock import epoch
from context_builder.recording.recording import Recording
from context_builder.recording.replay import RebuiltState, rebuild
from context_builder.session.client import Snapshot


def replay_log(
    file: Annotated[Path, typer.Argument(help="Recording that `record` wrote.", show_default=False)],
    at: Annotated[
        str, typer.Option("--at", metavar="TIME", help="ISO 8601, or seconds from the recording's start, or end.")
    ] = "end",
    as_json: Annotated[bool, typer.Option("--json", help="Print the published JSON, for programs.")] = False,
) -> None:
    """Rebuild the state that was published at an instant, from a recording alone.

    Examples:

        context-builder replay-log talk.jsonl --at 2026-03-02T10:31:00

        context-builder replay-log talk.jsonl --at 90 --json | jq .current_domains
    """
    run(_replay_log(Recording(file), at, Console(), as_json=as_json))


async def _replay_log(recording: Recording, at: str, console: Console, *, as_json: bool) -> None:
    rebuilt = rebuild(recording, instant(at, recording))
    if not rebuilt.exact:
        typer.echo("This version derives another state from the recording than was published at the time.", err=True)
    state = orjson.loads(rebuilt.state)
    if as_json:
        print_json(state)
        return
    snapshot = Snapshot(rebuilt.session_id, state, orjson.loads(rebuilt.conversation))
    console.print(overview(snapshot, rebuilt.at.wall, console.width, conversation=False, run_by=_heading(rebuilt)))


def instant(text: str, recording: Recording) -> float:
    """Return the epoch seconds that ``text`` names; local time where it has no offset."""
    if text == "end":
        return float("inf")
    try:
        return recording.header().at.wall + float(text)
    except ValueError:
        pass
    if (at := epoch(text)) is None:
        raise typer.BadParameter(f"{text!r} is not ISO 8601, seconds, or end", param_hint="--at")
    return at


def _heading(rebuilt: RebuiltState) -> Text:
    return Text(f"as published at {rebuilt.at.iso()}, revision {rebuilt.revision:,}", style="cyan")
