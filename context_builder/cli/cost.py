"""``cost``: what a session's model calls have cost."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from context_builder.cli.command import JsonFlag, print_json, redis_with, run, session_ids
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import dollars
from context_builder.errors import StoreError
from context_builder.session.client import JsonObject, SessionClient


def cost(
    session_id: Annotated[str, typer.Argument(help="Session to read.", show_default=False, autocompletion=session_ids)],
    as_json: JsonFlag = False,
) -> None:
    """Show tokens and estimated cost of a session's model calls, by task.

    Dollars are estimated by list prices; set LLM_PRICES for your own.

    Example:

        context-builder cost monday --json | jq .dollars
    """
    run(_cost(session_id, Console(), as_json=as_json))


async def _cost(session_id: str, console: Console, *, as_json: bool) -> None:
    async with redis_with(session_id) as redis:
        spent = await cost_of(SessionClient(redis, session_id))
    if as_json:
        print_json(spent)
    else:
        console.print(bill(spent))


async def cost_of(client: SessionClient) -> JsonObject:
    """Return what the session has cost. Raises :class:`StoreError` when it never ran."""
    spent = await client.cost()
    if spent is None:
        raise StoreError(
            f"session {client.session_id} has cost nothing: it never ran, or what is stored of it cannot be read"
        )
    return spent


def bill(spent: JsonObject) -> RenderableType:
    """Return the cost for people to read."""
    if not any(task["calls"] for task in spent["tasks"].values()):
        return Text("No model was called yet: plain text analysis costs nothing.")
    table = Table("task", box=None, header_style="bold", pad_edge=False, show_footer=True)
    table.columns[0].footer = "all"
    tasks = spent["tasks"]
    for heading, name in (
        ("calls", "calls"),
        ("prompt tokens", "prompt_tokens"),
        ("of these cached", "cached_tokens"),
        ("reply tokens", "completion_tokens"),
    ):
        column = [task[name] for task in tasks.values()]
        table.add_column(heading, justify="right", footer=f"{sum(column):,}")
    table.add_column("US dollars", justify="right", footer=dollars(spent["dollars"]))
    for name, task in tasks.items():
        counts = (task["calls"], task["prompt_tokens"], task["cached_tokens"], task["completion_tokens"])
        table.add_row(Text(plain(name)), *(f"{count:,}" for count in counts), dollars(task["dollars"]))
    if not spent["unpriced"]:
        return table
    names = ", ".join(plain(model) for model in spent["unpriced"])
    return Group(
        table, Text(f"The dollars leave out {names}, whose price is not known; set LLM_PRICES.", style="yellow")
    )
