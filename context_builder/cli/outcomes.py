"""``outcomes``: how context packages did, as feedback says, by what they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from context_builder.cli.command import JsonFlag, TenantOption, print_json, run
from context_builder.cli.package import asking
from context_builder.cli.view.palette import plain

if TYPE_CHECKING:
    from context_builder.knowledge.outcomes import OutcomeGroup, Outcomes

_MOST_SHOWN: Final = 12


def outcomes(
    days: Annotated[int, typer.Option("--days", min=1, max=3_650, help="Days of feedback to include.")] = 90,
    tenant: TenantOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how context packages did: outcomes by size, policy, signal and source, with counts and 95 % intervals.

    Outcomes, 0 to 1, are what callers said with `package rate`, POST /knowledge/context/{id}/feedback or the tool
    rate_context. A wide interval says that more feedback is needed before anything follows from it.

    Example:

        context-builder outcomes --days 30
    """
    run(_outcomes(days, tenant, as_json=as_json))


async def _outcomes(days: int, tenant: str | None, *, as_json: bool) -> None:
    async with asking(tenant, command="outcomes") as (service, agent):
        found = await service.outcomes(agent, datetime.now(UTC) - timedelta(days=days))
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
        return
    if not found.packages:
        typer.echo(f"No package has an outcome in the last {days} days; see `context-builder package rate --help`.")
        return
    Console().print(_table(found))


def _table(found: Outcomes) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("packages with", overflow="fold")
    for heading in ("count", "outcome", "95 %"):
        table.add_column(heading, justify="right", no_wrap=True)
    parts: dict[str, Sequence[OutcomeGroup]] = {
        "": [found.overall] if found.overall else [],
        "size": found.by_size,
        "policy": found.by_policy,
        "signal, mean of the sources": found.by_signal,
        "source": found.by_source,
    }
    for part, groups in parts.items():
        if part:
            table.add_row(Text(part, style="bold cyan"))
        for one in groups[:_MOST_SHOWN]:
            bounds = f"{one.low:.2f} – {one.high:.2f}"
            table.add_row(Text(f"  {plain(one.title or one.name, 60)}"), f"{one.packages:,}", f"{one.mean:.2f}", bounds)
    if found.notes:
        table.add_row(Text("latest notes", style="bold cyan"))
    for note in found.notes[:_MOST_SHOWN]:
        outcome = "" if note.outcome is None else f"{note.outcome:.2f}"
        table.add_row(Text(f"  {plain(note.note, 120)}"), "", outcome, "")
    return table
