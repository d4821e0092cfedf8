"""``ingest``: files as artifacts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from context_builder import log
from context_builder.cli.command import JsonFlag, TenantOption, legible, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import counted
from context_builder.errors import AnalystError, DatabaseError, require_extra

if TYPE_CHECKING:
    from context_builder.knowledge.ingest.ingest import IngestOptions, IngestResult
    from context_builder.knowledge.store import KnowledgeStore
    from context_builder.settings.settings import Settings

PATIENCE: Final = 10.0
"""Seconds for which passages are embedded; the rest is left to the server."""

_MOST_NAMED: Final = 10
_LONGEST_NAME: Final = 200


def ingest(
    path: Annotated[
        Path, typer.Argument(help="Folder or file to read.", show_default=False, exists=True, readable=True)
    ],
    project: Annotated[
        str, typer.Option("--project", help="Project that the files belong to.", show_default=False, callback=legible)
    ],
    module: Annotated[str, typer.Option("--module", help="Module of the project.", callback=legible)] = "",
    status: Annotated[str, typer.Option("--status", help="draft, approved, superseded or stale.")] = "approved",
    sensitivity: Annotated[
        str, typer.Option("--sensitivity", help="public, internal, confidential or restricted.")
    ] = "internal",
    prune: Annotated[bool, typer.Option("--prune", help="Erase the project's artifacts whose file is gone.")] = False,
    tenant: TenantOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return only when all passages are embedded.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Store a folder's text files, or one file, as artifacts, and the links and imports between them as edges.

    The command reads Markdown, other text and source code. It skips hidden files, symbolic links and files that
    .gitignore matches, in the folder or above it up to the repository's root. It sends nothing for unchanged files, so
    run it whenever files change: new content creates the artifact's next version. If a model is configured, the model
    writes shorter texts of public and internal documents. If interrupted, the command continues the next time.

    A single file is read whatever its name is, and stored as if its folder had been given; its links to other files
    follow when the folder is.

    If there is an embedding engine or EMBEDDING_MODEL, passages are embedded for ten seconds. The command then says how
    many are left and how long they will take: `serve` embeds them in the background, or `ingest --wait` now. Until
    then they are found by words.

    Examples:

        context-builder ingest docs --project kelp

        context-builder ingest permit.pdf --project kelp

        context-builder ingest . --project kelp --sensitivity confidential --prune
    """
    for needed in ("pathspec", "markdown_it", "ulid"):
        require_extra("knowledge", needed, "ingest")
    from context_builder.knowledge.artifact import Sensitivity, Status
    from context_builder.knowledge.ingest.ingest import IngestOptions

    for name, text in (("--project", project), ("--module", module)):
        if len(text) > _LONGEST_NAME:
            raise typer.BadParameter(f"{name} is at most {_LONGEST_NAME} characters")
    try:
        options = IngestOptions(project, module, Status(status), Sensitivity(sensitivity), prune)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    run(_ingest(path, tenant, options, wait=wait, as_json=as_json))


async def _ingest(path: Path, tenant: str | None, options: IngestOptions, *, wait: bool, as_json: bool) -> None:
    from context_builder.knowledge.ingest.ingest import ingest as ingest_path
    from context_builder.wiring.knowledge import open_knowledge, open_package_service

    settings = settings_in_force()
    log.configure("error", settings.process.log_format)  # what cannot be embedded is said in the output
    tenant_id = tenant or settings.memory.tenant_id
    with _progress("Reading") as progress:
        bar = progress.add_task("files", total=None)
        async with open_knowledge(settings) as knowledge:
            result = await ingest_path(knowledge.store, tenant_id, path, options, _shown_in(progress, bar))
            projected = await _projected(settings, knowledge.store, tenant_id)
    if result.erased:
        async with open_package_service(settings, tenant_id) as packages:
            for ref in result.erased:
                await packages.erasure.uncache(tenant_id, ref)
    embedded = await _embedded(settings, tenant_id, None if wait else PATIENCE)
    if as_json:
        print_json(
            {
                "new": result.new,
                "changed": result.changed,
                "unchanged": result.unchanged,
                "edges": result.edges,
                "erased": result.erased,
                "embedded": embedded.done,
                "unembedded": embedded.left,
                "projected": projected,
                "skipped": [{"path": one.path, "reason": one.reason} for one in result.skipped],
            }
        )
    else:
        _show(result)
        if embedded.done:
            typer.echo(f"{counted(embedded.done, 'passage')} embedded, to be found by meaning.")
        if embedded.left:
            typer.echo(
                f"{embedded.left:,} more to embed{embedded.estimate}: `context-builder serve` does so in the "
                "background, or `ingest --wait` now. Until then they are found by words."
            )
        if projected:
            typer.echo(f"{projected:,} summarized by the model, for packages without room for them whole.")
    if embedded.hint:
        typer.echo(f"Documents are found by words alone: {plain(embedded.hint, 200)}", err=True)


def _progress(what: str) -> Progress:
    """Return a bar on standard error, which only a terminal shows: of a log it would be an empty line."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _shown_in(progress: Progress, bar: TaskID) -> Callable[[int, int], None]:
    """Return what shows in a bar how many are done, and of how many."""
    return lambda done, total: progress.update(bar, completed=done, total=total)


async def _projected(settings: Settings, store: KnowledgeStore, tenant_id: str) -> int:
    """Let the model, if there is one, write shorter texts of documents; return how many documents got some."""
    from context_builder.wiring.knowledge import make_projections

    with Console(stderr=True).status("Summarizing documents, where there is a model …"):
        try:
            return await make_projections(settings, store, tenant_id)
        except AnalystError as error:
            reason = plain(str(error), 200)
            typer.echo(f"Not every document is summarized; extracts stand for the others: {reason}", err=True)
            return 0


@dataclass(slots=True)
class _Embedding:
    """How many passages are embedded and how many are not, in how many seconds, and why none can be."""

    done: int = 0
    left: int = 0
    seconds: float = 0.0
    hint: str = ""

    @property
    def estimate(self) -> str:
        """Return in words how long what is left will take, at the pace so far; empty before there is any."""
        if not self.done:
            return ""
        seconds = self.seconds / self.done * self.left
        return f", about {seconds:.0f} s" if seconds < 100 else f", about {seconds / 60:,.0f} min"


async def _embedded(settings: Settings, tenant_id: str, patience: float | None) -> _Embedding:
    """Embed the passages that are not yet, for ``patience`` seconds at most."""
    from context_builder.knowledge.store import document_space
    from context_builder.wiring.database import database_of
    from context_builder.wiring.stores import embedder_of, store_of

    database = database_of(settings)
    memory, described = store_of(settings, database)
    if embedder_of(settings) is None:
        return _Embedding(hint=described.hint)
    made = _Embedding()
    try:
        with _progress("Embedding") as progress:
            bar = progress.add_task("passages", total=None)
            began = time.monotonic()

            async with asyncio.timeout(None) as limit:

                def show(done: int, total: int) -> None:
                    if patience is not None and limit.when() is None:  # only now it is known what would be left
                        limit.reschedule(asyncio.get_running_loop().time() + patience)
                    made.done, made.left, made.seconds = done, total - done, time.monotonic() - began
                    progress.update(bar, completed=done, total=total)

                made.done = await memory.embed_missing(document_space(tenant_id), show)
    except TimeoutError:
        pass  # what is left is told
    except DatabaseError as error:
        made.hint = str(error)
    finally:
        await memory.close()
        if database is not None:
            await database.close()
    return made


def _show(result: IngestResult) -> None:
    files = result.new + result.changed + result.unchanged
    counts = f"{counted(files, 'file')}: {result.new:,} new, {result.changed:,} changed, {result.unchanged:,} as before"
    typer.echo(f"{counts}; {counted(result.edges, 'edge')} between them.")
    if not files and not result.skipped:
        typer.echo("It has no file that is read: Markdown, other text or source code, neither hidden nor ignored.")
    if result.erased:
        typer.echo(f"{len(result.erased):,} erased, whose file is gone.")
    for one in result.skipped[:_MOST_NAMED]:
        typer.echo(f"  left out: {plain(one.path, 100)} ({one.reason})", err=True)
    if (more := len(result.skipped) - _MOST_NAMED) > 0:
        typer.echo(f"  left out: {more:,} more; --json names them", err=True)
