"""``engines``: the Redis and PostgreSQL that come along."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from context_builder.cli.command import run


class Verb(StrEnum):
    """What to do with the engines."""

    STATUS = "status"
    START = "start"
    STOP = "stop"


def engines(
    verb: Annotated[Verb, typer.Argument(help="status, start or stop")] = Verb.STATUS,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show, start or stop the embedded Redis and PostgreSQL. Stopping keeps their data.

    [bold]Examples[/]

      context-builder engines

      context-builder engines stop
    """
    run(_engines(verb, as_json=json))


async def _engines(verb: Verb, *, as_json: bool) -> None:
    import asyncio

    from context_builder.embedded import home_of
    from context_builder.engines.engine import Engine
    from context_builder.engines.postgres import PostgresEngine
    from context_builder.engines.redis import RedisEngine
    from context_builder.settings import load_settings

    home = home_of(load_settings())
    both: dict[str, Engine] = {"Redis": RedisEngine(home), "PostgreSQL": PostgresEngine(home)}
    found: dict[str, str] = {}
    for name, engine in both.items():
        if verb is Verb.STOP:
            found[name] = "stopped" if await asyncio.to_thread(engine.stop) else "was not running"
        else:
            address = await asyncio.to_thread(engine.ensure if verb is Verb.START else engine.running)
            found[name] = address.name if address else "not running"
    if as_json:
        import orjson

        typer.echo(orjson.dumps({"home": str(home), **{name.lower(): what for name, what in found.items()}}).decode())
        return
    for name, what in found.items():
        typer.echo(f"{name:<11} {what}")
    typer.echo(f"{'data in':<11} {home}")
