"""``policy``: who may read what, by the tenant's Cedar policies, and why."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from context_builder.cli.command import JsonFlag, TenantOption, legible, print_json, print_text, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import counted
from context_builder.errors import ContextBuilderError, PolicyError, require_extra

if TYPE_CHECKING:
    from context_builder.knowledge.governance import AccessExplanation, GovernedSource, PolicySet
    from context_builder.wiring.knowledge import Knowledge

policy = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Manage and test the Cedar policies that decide who may read which sources.",
)

PolicyName = Annotated[str, typer.Argument(help="The policy text's name.", show_default=False, callback=legible)]

_ACCESS = {"read": "green", "redacted": "yellow", "denied": "red"}


@policy.command("list")
def list_policies(tenant: TenantOption = None, as_json: JsonFlag = False) -> None:
    """List the policies in force; a tenant begins with the policy named default.

    Example:

        context-builder policy list
    """
    run(_list(tenant, as_json=as_json))


@policy.command("show")
def show(name: PolicyName, tenant: TenantOption = None, as_json: JsonFlag = False) -> None:
    """Print a policy text.

    Example:

        context-builder policy show default > default.cedar
    """
    run(_show(name, tenant, as_json=as_json))


@policy.command("put")
def put(
    name: PolicyName,
    file: Annotated[
        Path, typer.Argument(help="File with the policy text.", show_default=False, exists=True, dir_okay=False)
    ],
    tenant: TenantOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Store a policy text; it takes effect with the next call.

    If the text does not parse or does not match the schema, the command prints line and column, and exits with status
    1.

    Example:

        context-builder policy put drafts drafts.cedar
    """
    run(_put(name, _text_of(file), tenant, as_json=as_json))


@policy.command("delete")
def delete(name: PolicyName, tenant: TenantOption = None, as_json: JsonFlag = False) -> None:
    """Delete a policy text. If no policy is left, every access of the tenant is denied.

    Example:

        context-builder policy delete drafts
    """
    run(_delete(name, tenant, as_json=as_json))


@policy.command("check")
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Policy files; each policy has the name of its file.", show_default=False, exists=True, dir_okay=False
        ),
    ] = None,
    ref: Annotated[str, typer.Option("--ref", help="Source to decide about.", callback=legible)] = "",
    role: Annotated[
        list[str] | None, typer.Option("--role", help="Role of the caller; may be repeated. [default: writer]")
    ] = None,
    sub: Annotated[str, typer.Option("--sub", help="Name of the caller.", callback=legible)] = "local",
    intent: Annotated[
        str, typer.Option("--intent", help="Purpose for which the source is requested.", callback=legible)
    ] = "",
    only: Annotated[bool, typer.Option("--only", help="Decide by the given files only.")] = False,
    tenant: TenantOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Explain how policies would decide about a source, or check policy texts; nothing is stored.

    With --ref, the command shows which of the tenant's policies permit or forbid each action, and the decision. A file
    replaces the policy of the same name (drafts.cedar replaces drafts), or is added. Without --ref, files are parsed
    and validated by the schema: for an invalid file, the command prints line and column, and exits with status 1.

    Examples:

        context-builder policy check drafts.cedar

        context-builder policy check --ref artifact:plan --role reader --sub ann

        context-builder policy check drafts.cedar --ref artifact:protocol
    """
    texts = {file: _text_of(file) for file in files or ()}
    if ref:
        run(_explain(texts, _Question(ref, tuple(role or ("writer",)), sub, intent, only), tenant, as_json=as_json))
    elif texts:
        _check(texts, as_json=as_json)
    else:
        raise typer.BadParameter("a file or --ref is needed")


class _Question(NamedTuple):
    """Who asks for which source; ``only`` by the policy files at hand."""

    ref: str
    roles: tuple[str, ...]
    sub: str
    intent: str
    only: bool


class _Opened(NamedTuple):
    knowledge: Knowledge
    tenant_id: str


@asynccontextmanager
async def _opened(tenant: str | None) -> AsyncIterator[_Opened]:
    require_extra("server", "cedarpy", "policy")
    from context_builder.wiring.knowledge import open_knowledge

    settings = settings_in_force()
    async with open_knowledge(settings) as knowledge:
        yield _Opened(knowledge, tenant or settings.memory.tenant_id)


async def _list(tenant: str | None, *, as_json: bool) -> None:
    async with _opened(tenant) as (knowledge, tenant_id):
        governance = await knowledge.policies.governance(tenant_id)
    ids = governance.policy_set.policy_ids
    counts = {name: sum(one.startswith(f"{name}#") for one in ids) for name in sorted(governance.texts)}
    if as_json:
        listed = [{"name": name, "policies": count} for name, count in counts.items()]
        print_json({"policyVersion": governance.policy_set.version, "texts": listed})
        return
    for name, count in counts.items():
        typer.echo(f"{plain(name)}  {counted(count, 'policy')}")
    if not counts:
        typer.echo("No policy text is left, so nothing may be read.", err=True)


async def _show(name: str, tenant: str | None, *, as_json: bool) -> None:
    async with _opened(tenant) as (knowledge, tenant_id):
        governance = await knowledge.policies.governance(tenant_id)
    if (text := governance.texts.get(name)) is None:
        raise _unknown(name)
    if as_json:
        print_json({"name": name, "text": text, "policyVersion": governance.policy_set.version})
    else:
        print_text(text)


async def _put(name: str, text: str, tenant: str | None, *, as_json: bool) -> None:
    async with _opened(tenant) as (knowledge, tenant_id):
        policy_set = await knowledge.policies.put(tenant_id, name, text)
    _told(name, "stored", policy_set, as_json=as_json)


async def _delete(name: str, tenant: str | None, *, as_json: bool) -> None:
    async with _opened(tenant) as (knowledge, tenant_id):
        if not await knowledge.policies.delete(tenant_id, name):
            raise _unknown(name)
        policy_set = (await knowledge.policies.governance(tenant_id)).policy_set
    _told(name, "deleted", policy_set, as_json=as_json)


def _told(name: str, what: str, policy_set: PolicySet, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "policyVersion": policy_set.version})
    else:
        typer.echo(f"{plain(name)} is {what}; the policies are now {policy_set.version}")


def _check(texts: Mapping[Path, str], *, as_json: bool) -> None:
    require_extra("server", "cedarpy", "policy")
    from context_builder.knowledge.governance import parse_policies

    checked: list[dict[str, Any]] = []
    for file, text in texts.items():
        try:
            count = len(parse_policies({"text": text}).policy_ids)
            checked.append({"file": str(file), "ok": True, "policies": count})
        except PolicyError as error:
            wrong = {"line": error.line, "column": error.column, "message": error.message}
            checked.append({"file": str(file), "ok": False, **wrong})
    if as_json:
        print_json(checked)
    for one in () if as_json else checked:
        name = plain(one["file"], 200)
        if one["ok"]:
            typer.echo(f"{name}: {counted(one['policies'], 'policy')}, all fit")
        else:
            place = f"line {one['line']}, column {one['column']}"
            typer.echo(f"context-builder: {name}, {place}: {plain(one['message'])}", err=True)
    if not all(one["ok"] for one in checked):
        raise typer.Exit(1)


async def _explain(texts: Mapping[Path, str], asked: _Question, tenant: str | None, *, as_json: bool) -> None:
    async with _opened(tenant) as (knowledge, tenant_id):
        from context_builder.knowledge.governance import Agent, DecisionContext, explained, parse_policies

        node = (await knowledge.store.nodes(tenant_id, [asked.ref], 0)).get(asked.ref)
        if node is None:
            raise ContextBuilderError(f"there is no source {asked.ref}")
        held = {} if asked.only else (await knowledge.policies.governance(tenant_id)).texts
        policy_set = parse_policies({**held, **{file.stem: text for file, text in texts.items()}})
    source = node.governed(tenant_id)
    agent = Agent(tenant_id, frozenset(asked.roles), asked.sub)
    found = explained(policy_set, agent, source, DecisionContext(asked.intent, datetime.now(UTC)))
    if as_json:
        print_json(_document(found, policy_set))
    else:
        Console().print(_shown(found, source, asked))


def _document(found: AccessExplanation, policy_set: PolicySet) -> dict[str, Any]:
    decision = found.decision
    return {
        "ref": decision.ref,
        "access": decision.access.value,
        "policies": list(decision.policies),
        "reason": decision.reason,
        "actions": [
            {"action": one.action, "allowed": one.allowed, "policies": list(one.policies), "reason": one.reason}
            for one in found.actions
        ],
        "policyVersion": policy_set.version,
    }


def _shown(found: AccessExplanation, source: GovernedSource, asked: _Question) -> RenderableType:
    decision = found.decision
    about = ", ".join(filter(None, (source.kind, source.status, source.sensitivity)))
    who = f"{asked.sub} ({', '.join(asked.roles)})"
    verdict = Text.assemble(
        (decision.access.value, _ACCESS[decision.access.value]), f" for {plain(who, 200)}: {plain(decision.reason)}"
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("action", "allowed", "why"):
        table.add_column(heading)
    for one in found.actions:
        reason = one.reason or "no policy permits"
        table.add_row(one.action, "yes" if one.allowed else "no", Text(plain(reason)))
    title = Text(f"{plain(decision.ref)} ({plain(about, 200)})", style="bold")
    parts: Sequence[RenderableType] = [title, verdict, Text(), table] if found.actions else [title, verdict]
    return Group(*parts)


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no UTF-8 text"
        raise typer.BadParameter(f"{plain(file, 200)}: {reason}") from None


def _unknown(name: str) -> ContextBuilderError:
    return ContextBuilderError(f"there is no policy text {name}; `context-builder policy list` names them")
