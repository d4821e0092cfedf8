"""A context package as people read it: its sources, every candidate with its verdict, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from context_builder.cli.view.palette import plain

if TYPE_CHECKING:
    from context_builder.assembly.budget import Receipt
    from context_builder.knowledge.audit import CandidateAudit, PackageAudit
    from context_builder.knowledge.package import ContextPackage


VERDICTS: Final = {
    "full": "green",
    "included": "green",
    "redacted": "green",
    "summarised": "yellow",
    "redacted+summarised": "yellow",
    "excluded": "bright_black",
    "withheld": "red",
    "denied": "red",
}


def package_table(package: ContextPackage) -> RenderableType:
    """Return the sources of a package, and below them its figures."""
    table = _table("source", "origin", "verdict", right=("tokens", "score"))
    for one in package.sources:
        table.add_row(
            Text(plain(one.heading, 60)),
            Text(", ".join(one.origins)),
            _verdict(one.projection.value),
            Text(f"{one.tokens:,}"),
            Text(f"{one.score:.2f}"),
        )
    rows: list[RenderableType] = [table, Text()] if package.sources else []
    return Group(*rows, *_figures(package))


def candidates_table(candidates: Sequence[CandidateAudit]) -> RenderableType:
    """Return what became of every candidate, from where it came with which signals, and why; readable in 80 columns."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("candidate", overflow="fold", ratio=3)
    table.add_column("verdict", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("origin: signals; why", overflow="fold", ratio=4)
    for one in candidates:
        signals = ", ".join(f"{name} {score:.2f}" for name, score in one.signals.items())
        told = Text(f"{', '.join(one.origins)}: {signals}")
        if one.reason:
            told.append(f"; {plain(one.reason, 200)}", style="dim")
        table.add_row(
            Text(plain(one.ref, 60)),
            _verdict(one.verdict),
            Text(f"{one.tokens:,}" if one.tokens else ""),
            Text(f"{one.score:.2f}"),
            told,
        )
    return table


def audit_view(audit: PackageAudit) -> RenderableType:
    """Return how a package came about: the request, its revisions, every candidate."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    for name, value in (
        ("intent", audit.request.get("intent", "")),
        ("task", audit.task_id),
        ("trace", audit.trace_id),
        ("asked by", f"{audit.sub} ({', '.join(audit.roles) or 'no role'})"),
        ("asked at", audit.requested_at.isoformat(timespec="seconds")),
        ("policies", audit.policy_decision.policy_version),
    ):
        if value:
            facts.add_row(name, Text(plain(value, 300)))
    for one in audit.revisions:
        facts.add_row(f"revision {one.revision}", f"{one.created_at.isoformat(timespec='seconds')}, {one.hash}")
    return Group(facts, Text(), candidates_table(audit.candidates))


def _figures(package: ContextPackage) -> list[Text]:
    counts = f"{package.denied:,} denied, {package.redacted:,} redacted, {package.excluded:,} left out"
    lines = [
        Text(f"{package.tokens_used:,} of {package.token_budget:,} tokens; {counts}"),
        Text(f"{package.context_package_id}, revision {package.revision}", style="dim"),
    ]
    if package.coverage.reduced:
        reasons = plain("; ".join(package.coverage.reasons)).replace("semantic: found", "found")
        lines.append(Text(f"not every search was complete: {reasons}", style="yellow"))
    if package.stale:
        lines.append(Text(f"there are newer versions of {plain(', '.join(package.stale))}", style="yellow"))
    return lines


def _table(*left: str, right: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, heading in enumerate(left):
        if place == 0:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, overflow="fold", min_width=10)  # the longest word in it
    for heading in right:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _verdict(verdict: str) -> Text:
    return Text(verdict, style=VERDICTS.get(verdict, ""))


MORE: Final = 500
"""Tokens by which ``--explain`` raises a limit, to tell what they would add."""

MOST_NAMED: Final = 10
"""Candidates that are named where more tokens would add many."""


def added_line(added: Sequence[Receipt]) -> Text:
    """Return what :data:`MORE` tokens would add."""
    names = [f"{one.id} ({one.tokens:,})" for one in added[:MOST_NAMED]]
    names += [f"{len(added) - MOST_NAMED} others"] if len(added) > MOST_NAMED else []
    return Text(f"{MORE} more tokens would add: {plain(', '.join(names)) or 'nothing'}")
