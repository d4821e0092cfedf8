"""Policies decide by these attributes of an agent, a source and the context, which are encoded for Cedar here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from context_builder.knowledge.artifact import Sensitivity
from context_builder.timestamps import in_utc

CONTEXT_ATTRIBUTES: Final = frozenset({"intent", "time"})
SOURCE_ATTRIBUTES: Final = frozenset(
    {"tenant", "kind", "sensitivity", "status", "project", "module", "session", "tags"}
)

_ADMIN: Final = "admin"
_SENSITIVITIES: Final = frozenset(Sensitivity)


class NotUnicode(Exception):
    """Raised for an attribute with half of a surrogate pair, which Cedar cannot be told."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The caller as the credential says; ``roles`` are Cedar's.

    One that ``oversees`` the tenant may know of everything there, as those of Cedar's role ``admin`` may.
    """

    tenant: str
    roles: frozenset[str]
    sub: str
    oversees: bool = False

    @property
    def knows_all(self) -> bool:
        """Return whether the agent may know that a source exists, whatever it is."""
        return self.oversees or _ADMIN in self.roles

    def attributes(self) -> str:
        """Return what Cedar is told of the agent, JSON. Raises :class:`NotUnicode`."""
        return _json({"tenant": self.tenant, "roles": sorted(self.roles), "sub": self.sub})


@dataclass(frozen=True, slots=True)
class GovernedSource:
    """What policies know of a source; an unknown attribute is empty.

    A ``sensitivity`` that is no :class:`~context_builder.knowledge.artifact.Sensitivity` counts as ``restricted``.
    """

    ref: str
    tenant: str
    kind: str = ""
    sensitivity: str = ""
    status: str = ""
    project: str = ""
    module: str = ""
    session: str = ""
    tags: frozenset[str] = frozenset()

    def attributes(self, read: frozenset[str] = SOURCE_ATTRIBUTES) -> str:
        """Return what Cedar is told of the source beside its ref, JSON, of the attributes that are ``read``.

        Raises :class:`NotUnicode`, for a ref too.
        """
        _json(self.ref)
        attributes = {
            "tenant": self.tenant,
            "kind": self.kind,
            "sensitivity": self.sensitivity if self.sensitivity in _SENSITIVITIES else Sensitivity.RESTRICTED,
            "status": self.status,
            "project": self.project,
            "module": self.module,
            "session": self.session,
            "tags": sorted(self.tags),
        }
        return _json({name: value for name, value in attributes.items() if name in read})


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The purpose and the time of a request, to the millisecond; a time without an offset is local."""

    intent: str
    time: datetime

    def attributes(self, read: frozenset[str]) -> str:
        """Return Cedar's context, JSON, of the attributes that are ``read``; half of a surrogate pair becomes ``?``.

        Cedar reads the context anew for each request, which takes half of the time where no policy reads any of it.
        """
        context: dict[str, object] = {}
        if "intent" in read:
            context["intent"] = self.intent.encode("utf-8", "replace").decode()
        if "time" in read:
            time = in_utc(self.time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            context["time"] = {"__extn": {"fn": "datetime", "arg": time}}
        return json.dumps(context)


def entity(kind: str, name: str, attributes: str) -> str:
    """Return Cedar's entity, JSON. Raises :class:`NotUnicode`."""
    return f'{{"uid": {_json({"type": kind, "id": name})}, "attrs": {attributes}, "parents": []}}'


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        raise NotUnicode from None
