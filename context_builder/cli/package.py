"""``package``: context packages from a terminal, built, opened, explained and listed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer
from rich.console import Console

from context_builder.cli.command import (
    JsonFlag,
    TenantOption,
    each_legible,
    legible,
    memory_filter_of,
    print_json,
    print_text,
    run,
    settings_in_force,
)
from context_builder.cli.view.palette import plain
from context_builder.errors import require_extra

if TYPE_CHECKING:
    from context_builder.knowledge.governance import Agent
    from context_builder.knowledge.request import ContextBuildRequest
    from context_builder.knowledge.revision import PackageEntry, RecentPackage
    from context_builder.knowledge.service import PackageService

package = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Build, open, rate and explain context packages.",
)

_LONGEST_NOTE: Final = 8_000
"""Characters of a note, at most."""

PackageId = Annotated[
    str, typer.Argument(help="Id of the package, which begins with cpk_.", show_default=False, callback=legible)
]
PromptFlag = Annotated[bool, typer.Option("--prompt", help="Print only the text for a model's prompt.")]


@package.command("build")
def build(
    intent: Annotated[
        str,
        typer.Option(
            "--intent", "-i", help="Task that the package is for, in words.", show_default=False, callback=legible
        ),
    ],
    budget: Annotated[
        int, typer.Option("--budget", "-b", min=1, max=2_000_000, help="Maximum tokens of the package.")
    ] = 4000,
    project: Annotated[
        str,
        typer.Option(
            "--project", help="Project to search, with what is linked to it; default: everything.", callback=legible
        ),
    ] = "",
    module: Annotated[str, typer.Option("--module", help="Module of the project.", callback=legible)] = "",
    session: Annotated[
        list[str] | None,
        typer.Option(
            "--session",
            help="Session to search; may be repeated. Default: every session, or none with --project.",
            callback=each_legible,
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="Kind of source to search by similarity, such as document, code or message; may be repeated.",
            callback=each_legible,
        ),
    ] = None,
    speaker: Annotated[
        str, typer.Option("--speaker", help="Of messages, include only this person's; a whole name.", callback=legible)
    ] = "",
    since: Annotated[
        str,
        typer.Option("--since", help="Of messages, include only those from this day or moment on, such as 2026-03-02."),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            "--until", help="Of messages, include only those up to the end of this day, or before this moment."
        ),
    ] = "",
    pin: Annotated[
        list[str] | None,
        typer.Option("--pin", help="Ref of a required source; may be repeated.", callback=each_legible),
    ] = None,
    task: Annotated[
        str, typer.Option("--task", help="Id of the task, for `package list --task`.", callback=legible)
    ] = "",
    tenant: TenantOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain each candidate's outcome, and what more tokens would add.")
    ] = False,
    as_json: JsonFlag = False,
    as_prompt: PromptFlag = False,
) -> None:
    """Build a context package: the sources that fit the intent, that this user may see, within the token budget.

    The command searches documents, code and decisions (`ingest`) and sessions by meaning, along the graph and by
    fields. The package is recorded and cached as on the server, for this user with the role writer. The exit status is
    1 if even the shortest form of the pinned sources exceeds the budget.

    --kind, --speaker, --since and --until narrow down the search by likeness; sources that the graph links to what it
    finds come in too. Days are in UTC.

    Examples:

        context-builder package build --intent "Label the clips" --project kelp

        context-builder package build -i "Why so loud?" --budget 1500 --explain

        context-builder package build -i "Why loud?" --session monday --kind point
    """
    fields: dict[str, Any] = {
        "intent": intent,
        "token_budget": budget,
        "task_id": task,
        "scope": {"project_id": project, "module_id": module, "session_ids": session or []},
        "pinned": pin or [],
        "retrieval": {"semantic": {"kinds": kind or [], "speaker": speaker, **_times(since, until)}},
    }
    _one_form(as_json=as_json, as_prompt=as_prompt)
    run(_build(fields, tenant, explain=explain, as_json=as_json, as_prompt=as_prompt))


@package.command("show")
def show(
    package_id: PackageId, tenant: TenantOption = None, as_json: JsonFlag = False, as_prompt: PromptFlag = False
) -> None:
    """Show a package as this user may see it now; an expired package is rebuilt from its request.

    Example:

        context-builder package show ID --prompt
    """
    _one_form(as_json=as_json, as_prompt=as_prompt)
    run(_show(package_id, tenant, as_json=as_json, as_prompt=as_prompt))


@package.command("audit")
def audit(package_id: PackageId, tenant: TenantOption = None, as_json: JsonFlag = False) -> None:
    """Explain a package: who asked for what, and the outcome of every candidate.

    Example:

        context-builder package audit ID
    """
    run(_audit(package_id, tenant, as_json=as_json))


@package.command("rate")
def rate(
    package_id: PackageId,
    outcome: Annotated[
        float | None,
        typer.Option(
            "--outcome", min=0, max=1, help="How well the task went with it, from 0 to 1.", show_default=False
        ),
    ] = None,
    helped: Annotated[
        list[str] | None,
        typer.Option(
            "--helped", help="Ref of a source that helped, or REF=0.5; may be repeated.", callback=each_legible
        ),
    ] = None,
    note: Annotated[str, typer.Option("--note", help="Why, in words.", callback=legible)] = "",
    tenant: TenantOption = None,
) -> None:
    """Say how a package did, and which of its sources helped; of each user the latest rating counts.

    Sources that help are ranked higher. `context-builder outcomes` shows how packages did.

    Example:

        context-builder package rate ID --outcome 0.8 --helped artifact:protocol
    """
    if outcome is None and not helped and not note:
        raise typer.BadParameter("one of --outcome, --helped and --note is needed")
    if len(note) > _LONGEST_NOTE:
        raise typer.BadParameter(f"--note has at most {_LONGEST_NOTE:,} characters")
    run(_rate(package_id, outcome, dict(map(_share, helped or ())), note, tenant))


def _share(text: str) -> tuple[str, float]:
    """Return the ref and the share in what ``--helped`` says. Raises :class:`typer.BadParameter`."""
    ref, _, share = text.partition("=")
    try:
        value = float(share or 1)
    except ValueError:
        value = -1.0
    if not ref or not 0 <= value <= 1:
        raise typer.BadParameter("--helped is the ref of a source, or REF=SHARE with a share from 0 to 1")
    return ref, value


async def _rate(
    package_id: str, outcome: float | None, helped: dict[str, float], note: str, tenant: str | None
) -> None:
    async with asking(tenant) as (service, agent):
        unknown = await service.feedback(agent, package_id, outcome, helped, note)
    for ref in unknown:
        typer.echo(f"{plain(ref, 200)} is not in the package, so nothing is noted of it", err=True)


@package.command("list")
def list_packages(
    task: Annotated[str | None, typer.Option("--task", help="Only packages of this task.", callback=legible)] = None,
    trace: Annotated[str | None, typer.Option("--trace", help="Only packages of this trace.", callback=legible)] = None,
    ref: Annotated[
        str | None, typer.Option("--ref", help="Only packages that contain this source.", callback=legible)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Maximum number of packages.")] = 50,
    tenant: TenantOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List packages, newest first; optionally those of a task or a trace, or with a source in them.

    Examples:

        context-builder package list

        context-builder package list --ref artifact:protocol
    """
    kinds: dict[Literal["task", "trace", "ref"], str | None] = {"task": task, "trace": trace, "ref": ref}
    asked = [(by, value) for by, value in kinds.items() if value is not None]
    if len(asked) > 1:
        raise typer.BadParameter("--task, --trace and --ref exclude each other")
    run(_list(asked[0] if asked else None, limit, tenant, as_json=as_json))


class _Asking(NamedTuple):
    """The service, and who asks."""

    service: PackageService
    agent: Agent


def _require_server(command: str = "package") -> None:
    for needed in ("ulid", "cedarpy"):
        require_extra("server", needed, command)


@asynccontextmanager
async def asking(tenant: str | None, intent: str | None = None, command: str = "package") -> AsyncIterator[_Asking]:
    """Open the package service, for this user of a tenant."""
    _require_server(command)
    from context_builder import log
    from context_builder.server.access.caller import local_caller
    from context_builder.wiring.knowledge import open_package_service

    settings = settings_in_force()
    log.configure("error", settings.process.log_format)  # what did not answer is said in the output
    tenant_id = tenant or settings.memory.tenant_id
    async with open_package_service(settings, tenant_id, intent) as service:
        yield _Asking(service, local_caller(tenant_id).agent)


async def _build(fields: dict[str, Any], tenant: str | None, *, explain: bool, as_json: bool, as_prompt: bool) -> None:
    _require_server()
    from context_builder.cli.view.package import MORE, added_line, candidates_table, package_table
    from context_builder.tracing import TraceContext

    request = _request(fields)
    async with asking(tenant, request.intent) as (service, agent):
        built = await service.build_explained(agent, request, TraceContext.new(), MORE)
        if as_prompt:
            print_text(await service.prompt(built.package))
            return
    if as_json:
        document = built.package.model_dump(mode="json", by_alias=True)
        if explain:
            document["candidates"] = [one.model_dump(mode="json", by_alias=True) for one in built.audit.candidates]
            document[f"addedBy{MORE}"] = [{"ref": one.id, "tokens": one.tokens} for one in built.added]
        print_json(document)
        return
    console = Console()
    console.print(package_table(built.package))
    if explain:
        console.print()
        console.print(candidates_table(built.audit.candidates))
        console.print(added_line(built.added))


async def _show(package_id: str, tenant: str | None, *, as_json: bool, as_prompt: bool) -> None:
    _require_server()
    from context_builder.cli.view.package import package_table

    async with asking(tenant) as (service, agent):
        found = (await service.get(agent, package_id)).package
        if as_prompt:
            print_text(await service.prompt(found))
        elif as_json:
            print_json(found.model_dump(mode="json", by_alias=True))
        else:
            Console().print(package_table(found))


async def _audit(package_id: str, tenant: str | None, *, as_json: bool) -> None:
    _require_server()
    from context_builder.cli.view.package import audit_view

    async with asking(tenant) as (service, agent):
        found = await service.audit(agent, package_id, of_others=True)
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    else:
        Console().print(audit_view(found))


async def _list(
    asked: tuple[Literal["task", "trace", "ref"], str] | None, limit: int, tenant: str | None, *, as_json: bool
) -> None:
    """List the packages that were asked for: where nothing was, all, each with its intent."""
    intents: dict[str, str] = {}
    found: Sequence[PackageEntry | RecentPackage]
    async with asking(tenant) as (service, agent):
        if asked is None:
            found = recent = await service.recent(agent, limit, of_others=True)
            intents = {one.package_id: one.intent for one in recent}
        else:
            found = await service.listing(agent, *asked, limit, None, of_any_source=True)
    if as_json:
        print_json([{"contextPackageId": one.package_id, "createdAt": one.created_at.isoformat()} for one in found])
        return
    for one in found:
        intent = plain(intents.get(one.package_id, ""), 80)
        typer.echo(f"{one.package_id}  {one.created_at.isoformat(timespec='seconds')}  {intent}".rstrip())
    if not found:
        none = "There is no package yet. Build one: context-builder package build --intent TEXT"
        typer.echo(f"No package of this {asked[0]} is on record." if asked else none, err=True)


def _times(since: str, until: str) -> dict[str, Any]:
    """Return what the options name, as moments. Raises :class:`typer.BadParameter`."""
    if not (since or until):
        return {}
    where = memory_filter_of(since=since, until=until)
    return {name: at for name, at in (("since", where.since), ("until", where.until)) if at is not None}


def _request(fields: dict[str, Any]) -> ContextBuildRequest:
    from pydantic import ValidationError

    from context_builder.knowledge.request import ContextBuildRequest

    try:
        return ContextBuildRequest(**fields)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(str(part) for part in wrong["loc"])
        raise typer.BadParameter(f"{plain(name, 80)}: {plain(wrong['msg'], 200)}") from None


def _one_form(*, as_json: bool, as_prompt: bool) -> None:
    if as_json and as_prompt:
        raise typer.BadParameter("--json and --prompt exclude each other")
