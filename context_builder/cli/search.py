"""``search``: what is remembered that is like a query, of what the filters let through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from context_builder.cli.command import (
    JsonFlag,
    TenantOption,
    each_legible,
    legible,
    memory_filter_of,
    print_json,
    run,
    settings_in_force,
)
from context_builder.cli.view.palette import plain
from context_builder.errors import require_extra

if TYPE_CHECKING:
    from context_builder.server.routes.memories import FoundMemory

_LONGEST_SHOWN: Final = 400


def search(
    query: Annotated[
        str,
        typer.Argument(help="What to search for; default: the newest memories.", show_default=False, callback=legible),
    ] = "",
    speaker: Annotated[str, typer.Option("--speaker", help="Who said it: a whole name.", callback=legible)] = "",
    session: Annotated[str, typer.Option("--session", help="Session in which it was said.", callback=legible)] = "",
    since: Annotated[str, typer.Option("--since", help="First day or moment, such as 2026-03-02.")] = "",
    until: Annotated[str, typer.Option("--until", help="Last day, or a moment before which it was said.")] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", help="message, point, preference or session_summary; may be repeated.", callback=each_legible
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Maximum number of memories.")] = 8,
    tenant: TenantOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Search what is remembered: messages, points of summaries, preferences, as far as this user may see them.

    Words are found in any language, and meaning if there is an embedding engine or EMBEDDING_MODEL. Days are in UTC.
    The exit status is 1 if nothing is found.

    Examples:

        context-builder search "boat noise" --speaker Ann --since 2026-03-01

        context-builder search --session monday --kind point --json
    """
    fields = {"speaker": speaker, "session": session, "since": since, "until": until, "kinds": tuple(kind or ())}
    run(_search(query, limit, fields, tenant, as_json=as_json))


async def _search(query: str, limit: int, fields: dict[str, Any], tenant: str | None, *, as_json: bool) -> None:
    for module in ("fastapi", "cedarpy", "jwt", "ulid", "jsonpatch"):
        require_extra("server", module, "search")
    from context_builder import log
    from context_builder.memory.memory import MemoryQuery, is_by_meaning_alone
    from context_builder.server.access.caller import local_caller
    from context_builder.server.routes.memories import LONGEST_QUERY, found_memories
    from context_builder.wiring.server import open_services

    settings = settings_in_force()
    log.configure("error", settings.process.log_format)
    if len(query) > LONGEST_QUERY:
        raise typer.BadParameter(f"a query has at most {LONGEST_QUERY:,} characters")
    wanted = MemoryQuery(query, limit, filter=memory_filter_of(**fields))
    async with open_services(settings, for_this_user=True) as opened:
        found = await found_memories(opened.services, local_caller(tenant or settings.memory.tenant_id), wanted)
    if as_json:
        print_json({"memories": [one.model_dump(mode="json", by_alias=True) for one in found]})
    else:
        if query.strip() and is_by_meaning_alone(one.origins for one in found):
            typer.echo("None was found by its words; what follows is near in meaning.\n", err=True)
        _show(found, Console())
    if not found:
        if not as_json:
            typer.echo("Nothing found.", err=True)
        raise typer.Exit(1)


def _show(found: Sequence[FoundMemory], console: Console) -> None:
    for one in found:
        about = Text(plain(one.speaker or one.kind, 60), style="bold cyan")
        where = [
            one.kind if one.speaker else "",
            one.session_id or "",
            f"{one.time:%Y-%m-%d %H:%M}" if one.time else "",
        ]
        about.append("  " + "  ".join(plain(part, 80) for part in where if part), style="dim")
        about.append(f"  {one.score:.2f}", style="dim")
        console.print(about)
        console.print(Padding(Text(plain(one.text, _LONGEST_SHOWN)), (0, 0, 1, 2)))
