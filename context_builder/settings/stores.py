"""Settings of the stores: Redis, the archive of summaries and the long-term memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, HttpUrl, Seconds, setting
from context_builder.settings.types import Port, PostgresUrl, RedisUrl


@dataclass(frozen=True, slots=True, config=CONFIG)
class RedisSettings:
    """Tells where the queue and the published state are."""

    url: RedisUrl | None = setting(
        None, "REDIS_URL", "URL of your Redis or Valkey, e.g. redis://:password@host:6379/0; wins over REDIS_HOST. URL"
    )
    host: str | None = setting(None, "REDIS_HOST", "Redis host, when there is no REDIS_URL. name")
    port: Port = setting(6379, "REDIS_PORT", "Redis port, with REDIS_HOST. number")
    password: SecretStr | None = setting(None, "REDIS_PASSWORD", "Redis password, with REDIS_HOST. text")
    embedded_password: bool = setting(
        True,
        "EMBEDDED_REDIS_PASSWORD",
        "Whether the embedded Redis asks for a password; if false, every user of this machine can read it. "
        "true or false",
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class ArchiveSettings:
    """Tells where summaries are archived, and memories kept if there is no SomaBrain."""

    supabase_url: HttpUrl | None = setting(
        None, "SUPABASE_URL", "Supabase project URL, e.g. https://abc.supabase.co; archives summaries and memories. URL"
    )
    supabase_key: SecretStr | None = setting(
        None, "SUPABASE_KEY", "Supabase service-role key; an anon key cannot write. key"
    )
    database_url: PostgresUrl | None = setting(
        None,
        "DATABASE_URL",
        "PostgreSQL that archives summaries and memories, when there is no Supabase, "
        "e.g. postgresql://user:password@host/database. URL",
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class MemorySettings:
    """Tells whose the long-term memories are, and how long finding them may take."""

    tenant_id: Annotated[str, Field(min_length=1)] = setting(
        "default", "TENANT_ID", "Tenant that owns the memories of this process; tenants find only their own. id"
    )
    embedding_query_time: Seconds = setting(
        0.2,
        "EMBEDDING_QUERY_TIME",
        "Longest wait for a query's embedding; after it, memories are found by words alone. seconds",
    )
