"""``engines``: the Redis, the PostgreSQL and the embedding engine that come along."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from context_builder.cli.command import JsonFlag, confirm, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.errors import SettingError

if TYPE_CHECKING:
    from context_builder.engines.engine import Engine


class EngineAction(StrEnum):
    """What to do with the engines."""

    STATUS = "status"
    START = "start"
    STOP = "stop"
    ENV = "env"
    PASSWORD = "password"  # noqa: S105 (a verb)


def engines(
    verb: Annotated[EngineAction, typer.Argument(help="status, start, stop, env or password")] = EngineAction.STATUS,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Stop engines without asking, even while sessions run.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show, start or stop the embedded Redis, PostgreSQL and embedding engine. Stopping keeps their data.

    Sessions that run on stopped engines stand still until the engines are started again, so stop lists these sessions
    and asks first. env prints a line for the shell that exports port and password of the embedded Redis, which it
    starts if need be, for listeners and other programs of yours; this package's commands know both. password prints the
    password alone.

    Examples:

        context-builder engines

        context-builder engines stop

        eval "$(context-builder engines env)"
    """
    if verb is EngineAction.ENV:
        typer.echo(run(_exported()))
        return
    if verb is EngineAction.PASSWORD:
        typer.echo(run(_password()))
        return
    if verb is EngineAction.STOP and not yes and (running := run(_running_sessions())):
        confirm(f"These run now and would stand still: {', '.join(running)}. Stop the engines?", yes=False)
    run(_engines(verb, as_json=as_json))


async def _exported() -> str:
    """Return the shell line that exports where the embedded Redis is, and its password."""
    from context_builder.wiring.embedded import redis_engine

    url = urlsplit((await asyncio.to_thread(redis_engine(settings_in_force()).ensure)).url)
    values = {"REDIS_PORT": str(url.port), **({"REDIS_PASSWORD": url.password} if url.password else {})}
    return f"export {' '.join(f'{name}={quote(value)}' for name, value in values.items())}"


async def _password() -> str:
    """Return the password of the embedded Redis. Raises :class:`SettingError` when it was turned off."""
    from context_builder.wiring.embedded import redis_engine

    settings = settings_in_force()
    if not settings.redis.embedded_password:
        raise SettingError("EMBEDDED_REDIS_PASSWORD is false: the embedded Redis asks for none")
    return await asyncio.to_thread(redis_engine(settings).password)


async def _running_sessions() -> list[str]:
    """Return the sessions that somebody runs on the embedded Redis, and who."""
    from context_builder.session.store.lease import describe
    from context_builder.session.store.registry import SessionRegistry
    from context_builder.storage.redis import client_for
    from context_builder.wiring.embedded import redis_engine

    address = await asyncio.to_thread(redis_engine(settings_in_force()).running)
    if address is None:
        return []
    async with client_for(address.url) as redis:
        listed = await SessionRegistry(redis).sessions()
    return [f"{each.session_id} ({plain(describe(each.owner), 60)})" for each in listed if each.owner is not None]


async def _engines(verb: EngineAction, *, as_json: bool) -> None:
    from context_builder.engines.embeddings import EmbeddingEngine
    from context_builder.engines.postgres import PostgresEngine
    from context_builder.wiring.embedded import embedding_engine, home_of, redis_engine

    settings = settings_in_force()
    home = home_of(settings)
    engines: dict[str, Engine] = {"Redis": redis_engine(settings), "PostgreSQL": PostgresEngine(home)}
    embeddings = EmbeddingEngine(home)
    is_running = await asyncio.to_thread(embeddings.running) is not None
    if is_running or embedding_engine(settings) is not None:  # running, it may have been turned off since
        engines["Embeddings"] = embeddings
    found: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, engine in engines.items():
        if verb is EngineAction.STOP:
            found[name] = "stopped" if await asyncio.to_thread(engine.stop) else "was not running"
        else:
            address = await asyncio.to_thread(engine.ensure if verb is EngineAction.START else engine.running)
            found[name] = address.name if address else "not running"
            notes[name] = " · ".join(filter(None, [address.warning, address.access])) if address else ""
    if as_json:
        print_json({"home": str(home), **{name.lower(): what for name, what in found.items()}})
        return
    for name, what in found.items():
        typer.echo(f"{name:<11} {what}{f'  ({notes[name]})' if notes.get(name) else ''}")
    typer.echo(f"{'data in':<11} {home}")
