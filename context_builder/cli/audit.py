"""``audit``: verify the record of who was shown what, and export the anchors that make it sure."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from context_builder.cli.command import JsonFlag, TenantOption, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import counted
from context_builder.errors import require_extra

if TYPE_CHECKING:
    from context_builder.knowledge.audit_chain import Anchor, AuditReport


class AuditAction(StrEnum):
    """What to do with the audit."""

    VERIFY = "verify"
    ANCHORS = "anchors"


def audit(
    verb: Annotated[AuditAction, typer.Argument(help="verify or anchors", show_default=False)],
    tenant: TenantOption = None,
    anchor: Annotated[
        Path | None, typer.Option("--anchor", help="Exported anchors to verify against.", exists=True, dir_okay=False)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Verify the hash chain of the audit of access decisions, or export its anchors.

    verify names the first row that was altered or removed, and then exits with status 1. It begins at the oldest
    anchor that is kept. anchors prints the anchor of each day, one per line. Anchors that are kept elsewhere also
    reveal that the owner of the database rewrote the whole chain.

    Examples:

        context-builder audit anchors > anchors.jsonl

        context-builder audit verify --anchor anchors.jsonl
    """
    require_extra("server", "ulid", "audit")
    from context_builder.knowledge.audit_chain import lines_of

    if verb is AuditAction.ANCHORS:
        for line in lines_of(run(_anchors(tenant))):
            typer.echo(line)
        return
    report = run(_verify(tenant, anchor))
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    if not report.is_intact:
        raise typer.Exit(1)


async def _anchors(tenant: str | None) -> list[Anchor]:
    from context_builder.knowledge.audit_chain import anchors_of
    from context_builder.wiring.database import open_database

    settings = settings_in_force()
    async with open_database(settings) as database:
        return await anchors_of(database.knowledge, tenant or settings.memory.tenant_id)


async def _verify(tenant: str | None, anchor: Path | None) -> AuditReport:
    from context_builder.knowledge.audit_chain import read_anchors, verify
    from context_builder.wiring.database import open_database

    exported = await asyncio.to_thread(read_anchors, anchor) if anchor else []
    settings = settings_in_force()
    oldest = datetime.now(UTC).date() - timedelta(days=settings.record.retention)
    async with open_database(settings) as database:
        with Console(stderr=True).status("Reading …") as status:
            return await verify(
                database.knowledge,
                tenant or settings.memory.tenant_id,
                oldest=oldest,
                exported=exported,
                on_page=lambda rows: status.update(f"Read {rows:,} rows …"),
            )


def _show(report: AuditReport) -> None:
    tenant = plain(report.tenant, 100)
    if report.is_intact:
        since = f" from row {report.first:,} on" if report.first > 1 else ""
        typer.echo(f"The audit of {tenant} is intact: {counted(report.rows, 'row')}{since}.")
        return
    typer.echo(f"The audit of {tenant} is broken: {plain(str(report.findings[0]), 500)}.")
    for finding in report.findings[1:]:
        typer.echo(f"  Also, {plain(str(finding), 500)}.")
