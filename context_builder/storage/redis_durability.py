"""A Redis server's configuration tells what it may lose of what it acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.storage.redis import server_info
from context_builder.storage.redis_availability import translated

_ASKED: Final = ("save", "appendfsync")
_FSYNC_NOTES: Final = {
    "everysec": "appendfsync is everysec: a power cut takes the last second or two; always is slower and loses nothing",
    "no": "appendfsync is no: a power cut takes what the system had not written, often 30 s; set everysec or always",
}


@dataclass(frozen=True, slots=True)
class Durability:
    """What a server may lose: ``faults`` lose acknowledged data without any disaster, ``notes`` are worth knowing."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def durability_of(client: Redis, known: Mapping[str, str] | None = None) -> Durability:
    """Return how durable the server is; ``known`` are settings it does not tell. Raises :class:`StoreError`."""
    info = await server_info(client)
    try:
        async with translated():
            config = {name: str((await client.config_get(name))[name]) for name in _ASKED}
    except StoreUnavailable:
        raise
    except StoreError:  # no such command, or not for this user, as in many managed servers
        config = {}
    return judged(info, {**(known or {}), **config})


def judged(info: Mapping[str, Any], config: Mapping[str, str]) -> Durability:
    """Return what INFO and CONFIG say; a value that neither has is named as not checked."""
    found, unchecked = Durability(), []
    if info.get("role") == "slave":
        primary = f"{info.get('master_host')}:{info.get('master_port')}"
        lost = "it refuses what a session writes, or loses it to its primary's copy"
        found.faults.append(f"it is a replica of {primary}: {lost}; connect to the primary, or through Sentinel")
    policy = info.get("maxmemory_policy")
    if policy is None:
        unchecked.append("maxmemory-policy")
    elif policy != "noeviction":
        found.faults.append(f"maxmemory-policy is {policy}: {evicted_by(policy)}; set noeviction")
    if "aof_enabled" not in info:
        unchecked.append("appendonly")
    elif not info["aof_enabled"]:
        found.faults.append(f"{_without_aof(config.get('save'))}; set appendonly yes")
    elif (fsync := config.get("appendfsync")) is None:
        unchecked.append("appendfsync")
    elif fsync in _FSYNC_NOTES:
        found.notes.append(_FSYNC_NOTES[fsync])
    if unchecked:
        why = "because this Redis does not allow reading its configuration"
        found.notes.append(f"could not be checked, {why}: {', '.join(unchecked)}")
    return found


def evicted_by(policy: str) -> str:
    """Return what a server with this ``maxmemory-policy`` deletes when its memory is full."""
    if policy.startswith("volatile"):
        return "when memory is full it deletes published states, and leases, so that running sessions lose theirs"
    return "when memory is full it deletes whatever it likes: messages that wait, summaries, whole sessions"


def _without_aof(save: str | None) -> str:
    if save:
        return f"it writes only snapshots (save {save}): a crash loses all messages and summaries since the last one"
    if save is None:
        return (
            "it is not append-only: a restart loses what came since its last snapshot, or all (it does not tell save)"
        )
    return "it neither appends to a file nor makes snapshots: a restart loses every session, and messages that wait"
