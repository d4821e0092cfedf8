"""``build``: the prompt of a session, and how it came about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from context_builder.cli.command import (
    JsonFlag,
    TenantOption,
    legible,
    memory_filter_of,
    print_json,
    run,
    session_ids,
    settings_for,
)
from context_builder.cli.view.package import MORE, added_line
from context_builder.cli.view.palette import plain, spaced
from context_builder.errors import ProjectUnknown, require_extra
from context_builder.session.client import SessionClient

if TYPE_CHECKING:
    from context_builder.assembly.budget import Receipt
    from context_builder.assembly.build_turn import BuiltContext
    from context_builder.assembly.builder import ContextBuilder
    from context_builder.settings.settings import Settings

STARTING: Final = 5.0
"""Seconds that a memory may take to be there, as one that has to be started does, and a model to find preferences; a
search has a turn's deadline."""

COLOURS: Final = {
    "included": "green",
    "redacted": "green",
    "summarised": "yellow",
    "clipped": "yellow",
    "dropped": "bright_black",
    "withheld": "red",
    "denied": "red",
}

_LONGEST_NAME: Final = 200


def build(
    session_id: Annotated[
        str, typer.Argument(help="Session that the prompt is for.", show_default=False, autocompletion=session_ids)
    ],
    query: Annotated[
        str,
        typer.Option("--query", "-q", help="Question to answer; default: the newest message.", callback=legible),
    ] = "",
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=1, help="Maximum tokens of the prompt; default: CONTEXT_MAX_TOKENS (4000)."),
    ] = None,
    system: Annotated[str, typer.Option("--system", help="System prompt to begin with.", callback=legible)] = "",
    tenant: TenantOption = None,
    user: Annotated[
        str | None,
        typer.Option("--user", help="User whose memories and preferences are included.", callback=legible),
    ] = None,
    package_scope: Annotated[
        str | None,
        typer.Option("--package-scope", help="Project whose documents are included.", callback=legible),
    ] = None,
    speaker: Annotated[
        str, typer.Option("--speaker", help="Include only this person's memories; a whole name.", callback=legible)
    ] = "",
    session: Annotated[
        str, typer.Option("--session", help="Include only this session's memories.", callback=legible)
    ] = "",
    since: Annotated[
        str, typer.Option("--since", help="Include only memories from this day or moment on, such as 2026-03-02.")
    ] = "",
    until: Annotated[
        str, typer.Option("--until", help="Include only memories up to the end of this day, or before this moment.")
    ] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Kind of memory, such as message or point; may be repeated."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain each candidate's outcome, with score and reason.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print the prompt for a session's next turn, never over the token limit.

    The prompt contains the session's published state (summary, topic, recent messages) and the memories that match the
    query. The memory has five seconds to start, and then a turn's deadline to answer; otherwise the prompt is built
    without it, and the last line says so. An ended session can be used until its retention is over. If a model is
    configured, it has five seconds to find the user's preferences in messages. The exit status is 1 if there is no
    such session, or if system prompt and query alone exceed the limit.

    Examples:

        context-builder build monday --query "How loud is it?" --max-tokens 2000

        context-builder build monday -q "What did we decide?" --explain

        context-builder build monday --speaker Ann --since 2026-03-01 -q "Why?"

        context-builder build monday --json | jq .messages
    """
    turn: dict[str, Any] = {"query": query, "system_prompt": system, "tenant_id": tenant, "user_id": user}
    narrowed = {"speaker": speaker, "session": session, "since": since, "until": until, "kinds": tuple(kind or ())}
    if any(narrowed.values()):
        turn["memory_filter"] = memory_filter_of(**narrowed)
    run(_build(session_id, turn, max_tokens, package_scope, Console(), explain=explain, as_json=as_json))


async def _build(
    session_id: str,
    turn: dict[str, Any],
    max_tokens: int | None,
    project: str | None,
    console: Console,
    *,
    explain: bool,
    as_json: bool,
) -> None:
    from context_builder import log
    from context_builder.wiring.builders import (
        assembly_rules_of,
        assumed_encoding,
        build_for_session,
        counter_of,
        open_builder,
    )
    from context_builder.wiring.servers import open_redis

    settings = await settings_for(session_id)
    log.configure("error", settings.process.log_format)  # what the memory failed at is said in the output
    turn = turn | {"tenant_id": settings.memory.tenant_id if turn["tenant_id"] is None else turn["tenant_id"]}
    async with (
        open_redis(settings) as redis,
        open_builder(settings, store_summaries=False, background_timeout=STARTING) as (builder, memory_is),
        _knowing(builder, settings, turn, project) as asking,
    ):
        if turn["user_id"] is not None:  # a model answers beside the turns, and this process has no later one
            await builder.preferences(turn["user_id"], turn["tenant_id"])
            await builder.drain()
        client = SessionClient(redis, session_id)
        built = await build_for_session(client, asking, max_prompt_tokens=max_tokens, **turn)
        assumed = assumed_encoding(settings)
        if as_json:
            print_json(document(built, assumed or counter_of(settings).encoding_name, explain=explain), str)
        else:
            margin = assembly_rules_of(settings).margin or 0.0
            show(built, console, f"{assumed}; {margin:.0%} of its window is kept free" if assumed else "")
            if explain:
                console.print(explanation(built, console.width))
            console.print(memory_line(built, memory_is.what, memory_is.hint))
        await builder.cancel_reading()  # asked again, or about older messages: nobody waits for it


@asynccontextmanager
async def _knowing(
    builder: ContextBuilder, settings: Settings, turn: dict[str, Any], project: str | None
) -> AsyncIterator[ContextBuilder]:
    """Open a builder in whose turns the knowledge of a project takes part, as far as this user may see it."""
    if project is None:
        yield builder
        return
    for needed in ("ulid", "cedarpy"):
        require_extra("server", needed, "--package-scope")
    from context_builder.knowledge.request import Scope
    from context_builder.server.access.caller import local_caller
    from context_builder.wiring.knowledge import open_package_service

    if len(project) > _LONGEST_NAME:
        raise typer.BadParameter(f"--package-scope is at most {_LONGEST_NAME} characters")
    tenant_id: str = turn["tenant_id"]
    async with open_package_service(settings, tenant_id, turn["query"] or project) as service:
        scope = Scope(project_id=project)
        if not await service.knows_project(tenant_id, scope):
            raise ProjectUnknown(project)
        yield builder.with_source(*service.for_turn(local_caller(tenant_id).agent, scope))


def document(built: BuiltContext, counted: str, *, explain: bool) -> dict[str, Any]:
    """Return the JSON that programs read; with ``explain`` receipts too, and those of what more tokens would add.
    ``counted`` names the encoding that tokens are counted in.
    """
    fields: dict[str, Any] = {
        "messages": built.messages,
        "token_counts": built.token_counts,
        "encoding": counted,
        "debug": built.debug,
    }
    if explain:
        fields["receipts"] = [one._asdict() for one in built.receipts]
        fields[f"added_by_{MORE}"] = [one._asdict() for one in built.added_by(MORE)]
    return fields


def show(built: BuiltContext, console: Console, assumed: str = "") -> None:
    """Print the messages and their cost; ``assumed`` is the encoding, where it may be another than the model's."""
    for message in built.messages:
        if message["content"] or message["role"] != "system":
            name = f" ({plain(message['name'], 60)})" if message.get("name") else ""
            console.print(Text(f"{plain(message['role'], 60)}{name}", style="bold cyan"))
            lines = map(spaced, str(message["content"]).splitlines())  # a space before an entry tells a forged one
            console.print(Padding(Text("\n".join(lines)), (0, 0, 1, 2)))
    counts = built.token_counts
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count and name != "total")
    console.print(Rule(style="bright_black"))
    console.print(Text(f"{counts['total']:,} of {built.debug['max_prompt_tokens']:,} tokens: {parts}"))
    if assumed:
        console.print(Text(f"counted as {plain(assumed, 120)}", style="yellow"))


def explanation(built: BuiltContext, columns: int) -> RenderableType:
    """Return what became of each candidate, and what more tokens would add, for so many columns of a terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("candidate", no_wrap=True, overflow="ellipsis", max_width=columns // 4)
    table.add_column("outcome", no_wrap=True)
    for heading in ("tokens", "score"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("signals; why; how it begins")
    for (is_shown, *_), group in groupby(built.receipts, key=lambda one: (bool(one.text), one.section, one.reason)):
        alike = list(group)
        if is_shown or len(alike) < 3:
            for one in alike:
                table.add_row(*_row(one))
        else:
            table.add_row(Text(f"{len(alike)} of {alike[0].section}"), *list(_row(alike[0]))[1:])
    return Group(table, added_line(built.added_by(MORE)))


def memory_line(built: BuiltContext, name: str, hint: str = "") -> Text:
    """Return whether the memory answered, and what to do when there is none."""
    outcome = str(built.debug["memory"])
    if outcome == "ok":
        found, seconds = built.debug["snippet_count"], built.debug["retrieval_seconds"]
        return Text(f"memory: {found} from {plain(name)} in {seconds * 1000:.0f} ms", style="dim")
    if outcome == "no memory":
        return Text(f"memory: {plain(name)}{f' ({hint})' if hint else ''}", style="dim")
    return Text(f"memory: nothing, {plain(outcome)}", style="yellow")


def _row(one: Receipt) -> Iterable[Text]:
    signals = ", ".join(f"{signal.name} {signal.score:.2f}" for signal in one.signals if signal.weight)
    about = ((signals, ""), (one.reason, "yellow"), (plain(one.text, 45), "dim"))
    return (
        Text(plain(_name(one), 40)),
        Text(one.outcome.value, style=COLOURS[one.outcome.value]),
        Text(f"{one.tokens:,}" if one.tokens else ""),
        Text(f"{one.score:.2f}" if one.signals else ""),
        Text("; ", style="dim").join(Text(plain(part), style) for part, style in about if part),
    )


def _name(one: Receipt) -> str:
    """Return what a candidate is called; a point of the summary by its number, as they are all this session's."""
    if one.id.startswith(one.section):
        return one.id
    _, is_point, number = one.id.rpartition(":point:")
    if is_point and one.section == "summary":
        return f"summary point {number.partition(':')[0]}"
    return f"{one.section} {one.id}"
