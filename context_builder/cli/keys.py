"""``keys``: who may call the server."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from context_builder.cli.command import legible, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.errors import ContextBuilderError, require_extra

if TYPE_CHECKING:
    from typing import Any

    from context_builder.server.access.caller import Role

_LONGEST = 200


class KeyAction(StrEnum):
    """What to do with keys."""

    CREATE = "create"
    LIST = "list"
    REVOKE = "revoke"


def keys(
    verb: Annotated[KeyAction, typer.Argument(help="create, list or revoke")] = KeyAction.LIST,
    key_id: Annotated[
        str, typer.Argument(help="The id of the key to revoke, as in the list.", show_default=False, callback=legible)
    ] = "",
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant", help="Tenant of the key; default: TENANT_ID, or all tenants in a list.", callback=legible
        ),
    ] = None,
    role: Annotated[str, typer.Option("--role", help="Role of the key: reader, writer or admin.")] = "reader",
    name: Annotated[str, typer.Option("--name", help="Name that tells what the key is for.", callback=legible)] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the list as JSON, for programs.")] = False,
) -> None:
    """Create, list or revoke API keys for `context-builder serve`.

    A new key is printed once, alone on standard output, and only a hash of it is kept. A reader reads and builds, a
    writer also sends messages and stores artifacts, an admin may do everything. A new or revoked key takes effect
    within a second on every server.

    Examples:

        context-builder keys create --tenant lab --role writer --name listener

        context-builder keys revoke 01KAR2M3X5Q8J4YV7T9ZB6WCDE
    """
    run(_keys(verb, key_id, tenant, role, name, as_json=json))


async def _keys(verb: KeyAction, key_id: str, tenant: str | None, role: str, name: str, *, as_json: bool) -> None:
    for module in ("fastapi", "ulid"):
        require_extra("server", module, "keys")
    from context_builder.wiring.server import open_api_keys

    settings = settings_in_force()
    if verb is KeyAction.CREATE:
        allowed = _role(role)
        owner = settings.memory.tenant_id if tenant is None else tenant
        for option, text in (("--tenant", owner), ("--name", name)):
            if len(text) > _LONGEST or not text.isprintable() or (option == "--tenant" and not text):
                raise typer.BadParameter(f"{option} is at most {_LONGEST} printable characters")
        async with open_api_keys(settings) as held:
            made = await held.create(owner, allowed, name)
        typer.echo(made.secret)
        typer.echo(f"Key {made.id} of tenant {plain(owner)}, role {allowed.value}. It is not shown again.", err=True)
        return
    async with open_api_keys(settings) as held:
        if verb is KeyAction.REVOKE:
            if not await held.revoke(key_id):
                raise ContextBuilderError("there is no valid key with this id; `context-builder keys` lists them")
            typer.echo(f"Key {plain(key_id)} is revoked.")
            return
        listed = await held.listed(tenant)
    if as_json:
        print_json(listed)
    else:
        _print_list(listed)


def _role(name: str) -> Role:
    from context_builder.server.access.caller import Role

    try:
        return Role(name)
    except ValueError:
        raise typer.BadParameter("--role is reader, writer or admin") from None


def _print_list(listed: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not listed:
        typer.echo("No keys yet. Make one: context-builder keys create --role writer --name listener")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("id, name", min_width=len(str(listed[0]["id"])), overflow="fold")
    table.add_column("tenant", min_width=6, overflow="fold")
    table.add_column("role", no_wrap=True)
    table.add_column("created, revoked", min_width=len("2026-03-02"))
    for one in listed:
        name = f"{one['id']}\n{plain(one['name'])}" if one["name"] else one["id"]
        revoked = f"\nrevoked {_minute(one['revoked_at'])}" if one["revoked_at"] else ""
        times = f"{_minute(one['created_at'])}{revoked}"
        table.add_row(*map(Text, (name, plain(one["tenant_id"]), one["role"], times)))
    Console().print(table)


def _minute(timestamp: object) -> str:
    return str(timestamp)[:16].replace("T", " ")
