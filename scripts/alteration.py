"""Changes the daemon before it starts, for a bench or a mutant; a change of what is not there any more is refused."""

from __future__ import annotations

from collections.abc import Mapping

from redis.asyncio import Redis
from redis.commands.core import AsyncScript

from context_builder.session import store


def replace(owner: object, name: str, by: object) -> None:
    """Put ``by`` in the place of ``owner.name``. Raises :class:`AttributeError` when there is none."""
    getattr(owner, name)
    setattr(owner, name, by)


def alter_commit(parts: Mapping[str, str]) -> None:
    """Replace these parts of ``commit.lua``. The daemon does not start when one of them is not there."""
    original = store.script

    def altered(client: Redis, name: str) -> AsyncScript:
        script = original(client, name)
        if name != "commit":
            return script
        source = str(script.script)
        for part, by in parts.items():
            if part not in source:
                raise ValueError(f"commit.lua has no {part!r} any more")
            source = source.replace(part, by)
        return client.register_script(source)

    replace(store, "script", altered)
