"""Changes the daemon before it starts, for a bench or a mutant; a change of what is not there any more is refused."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from redis.asyncio import Redis

from context_builder.session.store import store
from context_builder.session.store.scripts import Script


def replace(owner: object, name: str, by: object) -> None:
    """Put ``by`` in the place of ``owner.name``. Raises :class:`AttributeError` when there is none."""
    getattr(owner, name)
    setattr(owner, name, by)


def alter_commit(parts: Mapping[str, str]) -> None:
    """Replace these parts of ``commit.lua``. The daemon does not start when one of them is not there."""
    alter_script(store, "commit", parts)


def alter_script(user: ModuleType, name: str, parts: Mapping[str, str]) -> None:
    """Replace these parts of the Lua script that the module ``user`` runs by this name."""
    original = user.script

    def altered(client: Redis, asked_for: str) -> Script:
        script: Script = original(client, asked_for)
        if asked_for != name:
            return script
        source = script.source
        for part, by in parts.items():
            if part not in source:
                raise ValueError(f"{name}.lua has no {part!r} any more")
            source = source.replace(part, by)
        return Script(client, source)

    replace(user, "script", altered)
