"""``explain``: where each point of the summary comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from context_builder.cli.command import JsonFlag, print_json, redis_with, run, session_ids
from context_builder.cli.view.palette import ASSISTANT, SpeakerColours, plain
from context_builder.cli.view.summary import KINDS
from context_builder.clock import moment
from context_builder.session.client import SessionClient

if TYPE_CHECKING:
    from context_builder.session.summary.citation import CitedMessage, ExplainedPoint


def explain_command(
    session_id: Annotated[
        str, typer.Argument(help="Session to explain.", show_default=False, autocompletion=session_ids)
    ],
    as_json: JsonFlag = False,
) -> None:
    """Show each point of the summary with the messages behind it.

    For a long message, the first 500 characters are kept.

    Example:

        context-builder explain monday
    """
    run(_explain(session_id, Console(), as_json=as_json))


async def _explain(session_id: str, console: Console, *, as_json: bool) -> None:
    async with redis_with(session_id) as redis:
        points = await SessionClient(redis, session_id).points()
    if as_json:
        print_json({"session_id": session_id, "points": [point.wire() for point in points]})
    else:
        show(points, console)


def show(points: Sequence[ExplainedPoint], console: Console) -> None:
    """Print the points, oldest first, each with its messages below it."""
    colours = SpeakerColours()
    if not points:
        console.print(Text("nothing summarized yet", style="dim italic"))
    for point in points:
        sign, colour = KINDS.get(point.point.kind.value, KINDS["claim"])
        text = plain(point.point.text)
        console.print(Text.assemble((f"{sign} ", f"bold {colour}"), (text, "bold"), f"  {point.point.kind.value}"))
        for source in point.sources:
            console.print(Padding(_line(source, colours), (0, 0, 0, 4)))


def _line(source: CitedMessage, colours: SpeakerColours) -> Text:
    speaker = plain(source.speaker, 60)
    colour = ASSISTANT if source.consilience else colours[speaker]
    number = "" if source.number is None or source.consilience else f"#{source.number}  "
    text = plain(source.text)
    ending = "…" if source.clipped else ""
    return Text.assemble(
        (number, "dim"), (speaker, f"bold {colour}"), (f"  {_said_at(source.timestamp)}  ", "dim"), text, ending
    )


def _said_at(timestamp: str) -> str:
    """Return when a message was said, in local time; a timestamp that cannot be read as it is."""
    said = moment(timestamp)
    return plain(timestamp, 40) if said is None else f"{said.astimezone():%Y-%m-%dT%H:%M:%S}"
