"""The only reader of the environment.

Every setting is a field of a group, which is the config of one part. Its name in the environment, default, bounds, unit
and meaning are there (:func:`~context_builder.config.setting`), and nowhere else; ``.env.example`` is generated from
them (``context-builder settings --env``). A setting is read from the environment or from ``.env``; with the prefix
``CONTEXT_BUILDER_`` it wins over the plain name, which other programs may share. A wrong value, or an unknown name
with the prefix, is a :class:`~context_builder.errors.SettingError` that names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, model_validator

from context_builder.analysis.options import CallOptions, TaskConfig
from context_builder.assembly.config import AssemblyConfig
from context_builder.errors import SettingError
from context_builder.fleet.config import FleetConfig
from context_builder.knowledge.weights import PackageWeights
from context_builder.memory.options import EmbeddingOptions, SomaBrainOptions
from context_builder.session.config import SessionConfig
from context_builder.settings.env_file import read_values
from context_builder.settings.groups import (
    ArchiveSettings,
    KnowledgeServiceSettings,
    ListenerSettings,
    MemorySettings,
    ModelSettings,
    ProcessSettings,
    PromptSettings,
    RecordSettings,
    RedisSettings,
    ServerSettings,
    split_tenant,
    supabase_role,
)

PREFIX: Final = "CONTEXT_BUILDER_"

_OWN_PREFIXES: Final = (
    "CONSILIENCE_", "CONTEXT_", "DEAD_LETTERS_", "EMBEDDED_", "KEYWORD_", "PACKAGE_WEIGHT_", "RAW_BUFFER_", "SERVE_",
    "SUMMARY_",
)  # fmt: skip
"""Beginnings of settings that other programs' variables do not have."""

_LOOKS_ALIKE: Final = 0.85
"""Least share of letters in common, by ``difflib``, with which one name is taken for another misspelt."""


class Settings(BaseModel):
    """Everything that can be set, in groups: ``settings.redis.url`` is REDIS_URL."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    redis: RedisSettings = RedisSettings()
    archive: ArchiveSettings = ArchiveSettings()
    memory: MemorySettings = MemorySettings()
    embedding: EmbeddingOptions = EmbeddingOptions()
    somabrain: SomaBrainOptions = SomaBrainOptions()
    model: ModelSettings = ModelSettings()
    tasks: TaskConfig = TaskConfig()
    calls: CallOptions = CallOptions()
    session: SessionConfig = SessionConfig()
    assembly: AssemblyConfig = AssemblyConfig()
    prompt: PromptSettings = PromptSettings()
    process: ProcessSettings = ProcessSettings()
    fleet: FleetConfig = FleetConfig()
    server: ServerSettings = ServerSettings()
    listener: ListenerSettings = ListenerSettings()
    record: RecordSettings = RecordSettings()
    services: KnowledgeServiceSettings = KnowledgeServiceSettings()
    weights: PackageWeights = PackageWeights()

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        archive, embedding, session, server = self.archive, self.embedding, self.session, self.server
        if self.redis.urls is not None and (self.redis.url or self.redis.host):
            raise ValueError("REDIS_URLS: is set, and so is REDIS_URL or REDIS_HOST; one of them is enough")
        if any(split_tenant(url.get_secret_value())[1] == "" for url in self.redis.urls or ()):
            raise ValueError("REDIS_URLS: has tenant= without a name after it")
        names = [one.redis.server_name for one in self.of_each_server()]
        if len({*names}) < len(names):
            raise ValueError("REDIS_URLS: names a server twice")
        if archive.supabase_url and not archive.supabase_key:
            raise ValueError("SUPABASE_KEY: is missing, but SUPABASE_URL is set")
        if archive.supabase_key and not archive.supabase_url:
            raise ValueError("SUPABASE_URL: is missing, but SUPABASE_KEY is set")
        if archive.supabase_key and supabase_role(archive.supabase_key.get_secret_value()) == "anon":
            raise ValueError("SUPABASE_KEY: is an anon key, which cannot write; use the service key")
        if embedding.model and not (
            embedding.base_url or self.model.openai_base_url or embedding.api_key or self.model.openai_api_key
        ):
            raise ValueError("EMBEDDING_API_KEY: is missing, and so is OPENAI_API_KEY")
        if session.conversation_state_ttl <= session.tick:
            raise ValueError("POLL_INTERVAL: must be below CONVERSATION_STATE_TTL, or the state would expire")
        if session.lease <= 2 * session.tick:
            raise ValueError("LEASE_TIME: must be more than twice POLL_INTERVAL, or the lease would expire")
        if self.fleet.sleep <= session.silence:
            raise ValueError(
                "SESSION_SLEEP: must be above SILENCE_THRESHOLD, or a session would sleep before it is silent"
            )
        if session.summary_keep_last >= session.buffer_max:
            raise ValueError("SUMMARY_KEEP_LAST: must be below RAW_BUFFER_MAX_MESSAGES")
        if server.jwks_url and server.jwks_file:
            raise ValueError("AUTH_JWKS_FILE: is set, and so is AUTH_JWKS_URL; one of them is enough")
        if (server.jwks_url or server.jwks_file) and not server.audience:
            raise ValueError("AUTH_AUDIENCE: is missing; a JWT for another program must not hold here")
        if (server.jwks_url or server.jwks_file) and not server.issuer:
            raise ValueError("AUTH_ISSUER: is missing, but JWTs are to be taken")
        return self

    def of_each_server(self) -> tuple[Self, ...]:
        """Return the settings with each Redis server alone, and its tenant; these, unless there are REDIS_URLS."""
        if self.redis.urls is None:
            return (self,)
        each = []
        for secret in self.redis.urls:
            url, tenant_id = split_tenant(secret.get_secret_value())
            redis = replace(self.redis, url=SecretStr(url), urls=None, named_by="REDIS_URLS")
            memory = replace(self.memory, tenant_id=self.memory.tenant_id if tenant_id is None else tenant_id)
            folder = self.process.record_dir
            if folder is not None and memory.tenant_id != self.memory.tenant_id:  # the folder itself is TENANT_ID's
                folder /= f"tenant={quote(memory.tenant_id, safe='')}"
            process = replace(self.process, record_dir=folder)
            each.append(self.model_copy(update={"redis": redis, "memory": memory, "process": process}))
        return tuple(each)

    def by_name(self) -> dict[str, Any]:
        """Return every setting's JSON value by its name in the environment; secrets are masked."""
        groups = self.model_dump(mode="json")
        return {name: groups[one.group][one.field] for name, one in definitions().items()}


@dataclass(frozen=True, slots=True)
class SettingDefinition:
    """Describes a setting: its group and field, its default and its meaning."""

    group: str
    field: str
    default: Any
    description: str


@cache
def definitions() -> Mapping[str, SettingDefinition]:
    """Return every setting, by its name in the environment, in the order of the documentation."""
    return dict(_definitions())


def _definitions() -> Iterator[tuple[str, SettingDefinition]]:
    for group, part in Settings.model_fields.items():
        for field, declared in type(part.default).__pydantic_fields__.items():
            if declared.title:
                yield declared.title, SettingDefinition(group, field, declared.default, declared.description or "")


def load_settings(
    environ: Mapping[str, str] | None = None, *, env_file: Path | None = Path(".env"), **overrides: object
) -> Settings:
    """Return the settings from ``overrides``, the environment and the ``.env`` file, in this order of precedence.

    Overrides are named as in the environment, in small letters: ``poll_interval=0.1``. An empty value counts as not
    set. Raises :class:`SettingError` naming the first wrong setting.
    """
    environ = os.environ if environ is None else environ
    from_file = read_values(env_file) if env_file is not None else {}
    values: dict[str, object] = {}
    spelled: dict[str, str] = {}
    for source in (from_file, environ):
        for name in _unknown(source):
            raise SettingError(f"{name}: unknown setting{_suggestion(name)}")
        for setting in definitions():
            for name in (setting, _prefixed(setting)):
                if source.get(name):
                    values[setting], spelled[setting] = source[name], name
    for name, value in overrides.items():
        if name.upper() not in definitions():
            raise SettingError(f"{name}: unknown setting{_suggestion(name.upper())}")
        if value is not None:
            values[name.upper()] = value
    try:
        return _validated(values)
    except ValidationError as error:
        raise SettingError(_first_line(error, spelled)) from None


def _validated(values: Mapping[str, object]) -> Settings:
    groups: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        setting = definitions()[name]
        groups.setdefault(setting.group, {})[setting.field] = value
    return Settings.model_validate(groups)


def _prefixed(setting: str) -> str:
    return setting if setting.startswith(PREFIX) else PREFIX + setting


def _unknown(source: Mapping[str, str | None]) -> Iterable[str]:
    known = set(map(_prefixed, definitions()))
    return sorted(name for name in source if name.startswith(PREFIX) and name not in known)


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    known = {setting.removeprefix(PREFIX) for setting in definitions()}
    close = get_close_matches(name.removeprefix(PREFIX), sorted(known), n=1)
    return f"; did you mean {PREFIX}{close[0]}?" if close else ""


class Misspelt(NamedTuple):
    """Names what is set but is not a setting, where that is, and the setting that it looks like."""

    where: str
    name: str
    meant: str

    def __str__(self) -> str:
        return f"{self.where}: {self.name} is not a setting; did you mean {self.meant}?"


def misspelt() -> list[Misspelt]:
    """Return names in ``.env`` and in the environment that are not settings but look like one, or begin as only our
    settings do.
    """
    places = ((".env", read_values(Path(".env"))), ("environment", os.environ))
    return [
        Misspelt(where, name, meant)
        for where, names in places
        for name in names
        if not name.startswith(PREFIX) and (meant := _meant(name))
    ]


def _meant(name: str) -> str:
    """Return the setting that a name looks like; empty for a setting, and for what looks like none."""
    from difflib import get_close_matches

    known = [one for one in definitions() if not one.startswith(PREFIX)]
    if name in known:
        return ""
    upper = name.upper()
    own = next((prefix for prefix in _OWN_PREFIXES if upper.startswith(prefix)), None)
    among = known if own is None else [one for one in known if one.startswith(own)]
    close = get_close_matches(upper, among, n=1, cutoff=_LOOKS_ALIKE if own is None else 0.0)
    return close[0] if close else ""


_WORDS: Final = {
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
    "path_not_directory": "must be a folder that exists",
}
"""What is wrong with a value, by pydantic's types of errors, whose own words are a programmer's."""


def _first_line(error: ValidationError, spelled: Mapping[str, str]) -> str:
    """Return the first thing wrong, as ``NAME: what is wrong``, without the value (it may be a secret)."""
    first = error.errors(include_url=False, include_input=False)[0]
    text = (
        _WORDS.get(first["type"], first["msg"]).removeprefix("Value error, ").replace("Input should be", "must be", 1)
    )
    if len(first["loc"]) < 2:  # of several settings together, whose message names them
        return text
    name = next(name for name, one in definitions().items() if (one.group, one.field) == first["loc"][:2])
    return f"{spelled.get(name, name)}: {text[:1].lower()}{text[1:]}"
