"""Groups of settings: models, Redis, archive and memory, prompts, and the process itself; and types of their values."""

from __future__ import annotations

import base64
import binascii
import json
import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote_plus, urlsplit

from pydantic import AfterValidator, BeforeValidator, DirectoryPath, Field, SecretStr
from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, Count, HttpUrl, ModelName, Rate, Seconds, check_url, setting
from context_builder.storage.urls import server_name

Port = Annotated[int, Field(ge=1, le=65535)]


def _secret_url_of(*schemes: str) -> AfterValidator:
    def check(value: SecretStr) -> SecretStr:
        check_url(value.get_secret_value(), *schemes)
        return value

    return AfterValidator(check)


def _check_grpc_url(value: str) -> str:
    where = urlsplit(check_url(value, "grpc", "grpcs"))
    if where.port is None or where.username is not None or where.path.strip("/"):
        raise ValueError("must be grpc://host:port, or grpcs://host:port for TLS")
    return value


GrpcUrl = Annotated[str, AfterValidator(_check_grpc_url)]
RedisUrl = Annotated[SecretStr, _secret_url_of("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")]


def _check_networks(value: str) -> str:
    for one in filter(None, (one.strip() for one in value.split(","))):
        try:
            ip_network(one, strict=False)
        except ValueError:
            raise ValueError("must be addresses or networks, such as 10.0.0.0/8, separated by commas") from None
    return value


Networks = Annotated[str, AfterValidator(_check_networks)]


def _listed(value: object) -> object:
    """Return the URLs of a text, in which blanks or commas are between them."""
    return tuple(re.split(r"[\s,]+(?=[a-z+]+://)", value.strip())) if isinstance(value, str) else value


RedisUrls = Annotated[tuple[RedisUrl, ...], BeforeValidator(_listed)]


def split_tenant(url: str) -> tuple[str, str | None]:
    """Return a Redis URL without its ``tenant=``, and what that names."""
    address, _, query = url.partition("?")
    options = query.split("&") if query else []
    tenants = [unquote_plus(one.removeprefix("tenant=")) for one in options if one.startswith("tenant=")]
    if len(tenants) > 1:
        raise ValueError("REDIS_URLS: gives a server to two tenants")
    kept = "&".join(one for one in options if not one.startswith("tenant="))
    return f"{address}?{kept}" if kept else address, tenants[0] if tenants else None


PostgresUrl = Annotated[SecretStr, _secret_url_of("postgres", "postgresql")]


def _price_table(value: object) -> object:
    """Return the table in JSON; what is wrong with it is told in one sentence."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(table, dict):
        raise ValueError('must be an object: {"MODEL": [prompt, cached, reply]}')
    for model, prices in table.items():
        if not isinstance(prices, list | tuple) or len(prices) != 3:
            raise ValueError(f"{model} must have three prices: [prompt, cached, reply]")
    return table


DollarsPerMillion = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PriceTable = Annotated[
    dict[str, tuple[DollarsPerMillion, DollarsPerMillion, DollarsPerMillion]], BeforeValidator(_price_table)
]


def supabase_role(key: str) -> str | None:
    """Return the role that a Supabase key gives: the JWT's claim, or what the prefix of a new key says."""
    if key.startswith("sb_publishable_"):
        return "anon"
    if key.startswith("sb_secret_"):
        return "service_role"
    try:
        payload = key.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return str(claims.get("role"))
    except (IndexError, ValueError, binascii.Error, AttributeError):
        return None


Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=CONFIG)
class ModelSettings:
    """Where the models and their prompts are, and what they may cost."""

    openai_api_key: SecretStr | None = setting(
        None, "OPENAI_API_KEY", "OpenAI API key; without a key or OPENAI_BASE_URL, plain text analysis is used. key"
    )
    openai_base_url: HttpUrl | None = setting(
        None, "OPENAI_BASE_URL", "Base URL of a server that speaks OpenAI's API, instead of OpenAI's own. URL"
    )
    local_model_url: HttpUrl | None = setting(
        None,
        "LOCAL_MODEL_URL",
        "Base URL of a model server on this machine that reads messages when OpenAI fails or is not set. URL",
    )
    prompts_dir: DirectoryPath | None = setting(
        None, "PROMPTS_DIR", "Folder with prompt files that replace those in prompts/, under the same names. path"
    )
    budget_per_hour: Dollars | None = setting(
        None, "LLM_BUDGET_PER_HOUR", "Maximum cost of this process's model calls in an hour. US dollars"
    )
    prices: PriceTable | None = setting(
        None,
        "LLM_PRICES",
        'Model prices instead of list prices: {"MODEL": [prompt, cached, reply]}. JSON, US dollars a million tokens',
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class RedisSettings:
    """Where the queue and the published state are."""

    url: RedisUrl | None = setting(
        None, "REDIS_URL", "URL of your Redis or Valkey, e.g. redis://:password@host:6379/0; wins over REDIS_HOST. URL"
    )
    urls: RedisUrls | None = setting(
        None,
        "REDIS_URLS",
        "URLs of several Redis servers, separated by blanks, instead of REDIS_URL; a session lives where its "
        "listener pushes, and ?tenant=NAME assigns all sessions of a server to a tenant. URLs",
    )
    host: str | None = setting(None, "REDIS_HOST", "Redis host, when there is no REDIS_URL. name")
    port: Port = setting(6379, "REDIS_PORT", "Redis port, with REDIS_HOST. number")
    password: SecretStr | None = setting(None, "REDIS_PASSWORD", "Redis password, with REDIS_HOST. text")
    embedded_password: bool = setting(
        True,
        "EMBEDDED_REDIS_PASSWORD",
        "Require a password for the embedded Redis; if false, every user of this machine can read it. true or false",
    )

    named_by: str = "REDIS_URL"
    """Setting that the URL is from, for errors about it."""

    @property
    def server_name(self) -> str:
        """Return what the server of ``url`` is called, without credentials; ``redis`` where there is no URL."""
        return "redis" if self.url is None else server_name(self.url.get_secret_value())


@dataclass(frozen=True, slots=True, config=CONFIG)
class ArchiveSettings:
    """Where summaries are archived, and memories kept if there is no SomaBrain."""

    archive: Literal["auto", "off"] = setting(
        "auto",
        "ARCHIVE",
        "Whether summaries are archived: auto uses DATABASE_URL, SUPABASE_URL, or else the embedded PostgreSQL if the "
        "extra embedded is installed; off keeps them in Redis alone.",
    )
    supabase_url: HttpUrl | None = setting(
        None, "SUPABASE_URL", "Supabase project URL, e.g. https://abc.supabase.co; archives summaries and memories. URL"
    )
    supabase_key: SecretStr | None = setting(
        None,
        "SUPABASE_KEY",
        "Supabase secret key (sb_secret_…) or service-role key; a publishable or anon key cannot write. key",
    )
    database_url: PostgresUrl | None = setting(
        None,
        "DATABASE_URL",
        "PostgreSQL for summaries, memories and knowledge; wins over SUPABASE_URL, "
        "e.g. postgresql://user:password@host/database. URL",
    )
    connections: Count = setting(
        4,
        "DATABASE_CONNECTIONS",
        "Maximum PostgreSQL connections of a process for memories, and the same number again for knowledge; "
        "also limits how many context packages search for sources at once. connections",
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class MemorySettings:
    """Whose the long-term memories are, and how long a search may take."""

    memory: Literal["auto", "off"] = setting(
        "auto",
        "MEMORY",
        "Whether sessions are remembered: auto uses SA01_SOMA_BASE_URL, DATABASE_URL, SUPABASE_URL, or else the "
        "embedded PostgreSQL if the extra embedded is installed; off remembers nothing, and prompts hold no memories.",
    )
    tenant_id: Annotated[str, Field(min_length=1)] = setting(
        "default", "TENANT_ID", "Tenant that owns the memories of this process; tenants find only their own. id"
    )
    embedding_query_time: Seconds = setting(
        0.2,
        "EMBEDDING_QUERY_TIME",
        "Longest wait for a query's embedding; after it, memories are found by words alone. seconds",
    )
    embedded_embeddings: bool = setting(
        True,
        "EMBEDDED_EMBEDDINGS",
        "Start a small embedding model (extra embedded) that finds memories by meaning when no EMBEDDING_MODEL "
        "is set. true or false",
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class PromptSettings:
    """Configures a builder of prompts; its limits and weights are an ``AssemblyConfig``."""

    model: ModelName | None = setting(
        None, "CONTEXT_MODEL", "Model that prompts are built for; its context window replaces CONTEXT_MAX_TOKENS. name"
    )
    summarizer: Literal["extract", "analyst"] = setting(
        "extract",
        "CONTEXT_SUMMARIZER",
        "How messages that leave a prompt are summarized: extract quotes them, analyst asks the model that "
        "reads messages (OPENAI_…, LOCAL_MODEL_URL).",
    )
    preferences: Literal["patterns", "analyst"] = setting(
        "analyst",
        "CONTEXT_PREFERENCES",
        "How users' preferences are found in messages: patterns matches their words, analyst asks the model "
        "(OPENAI_…) if one is configured.",
    )
    preload: bool = setting(
        True,
        "CONTEXT_PRELOAD",
        "Load tokenizer, redactor and connections when a program opens a builder, instead of at its first prompt. true "
        "or false",
    )
    redact: Literal["none", "secrets", "personal", "all"] = setting(
        "none",
        "CONTEXT_REDACT",
        "Data that is redacted in prompts and in the long-term memory; personal data needs the extra pii.",
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class ProcessSettings:
    """What a process keeps on disk, serves over HTTP and logs."""

    home: Path | None = setting(
        None, "CONTEXT_BUILDER_HOME", "Data folder of the embedded engines; default: the user's data folder. path"
    )
    record_dir: Path | None = setting(
        None, "RECORD_DIR", "Folder in which every session is recorded, including what people say. path"
    )
    session_retention: Seconds = setting(
        604800.0, "SESSION_RETENTION", "Time after the last message for which Redis keeps a finished session. seconds"
    )
    http_port: Port | None = setting(
        None, "HTTP_PORT", "Port that serves /metrics, /livez and /readyz; not served if unset. port"
    )
    http_host: str = setting("127.0.0.1", "HTTP_HOST", "Address that HTTP_PORT listens on. address")
    otlp_endpoint: HttpUrl | None = setting(
        None,
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "Base URL of an OpenTelemetry collector that receives spans over HTTP, e.g. http://127.0.0.1:4318; no "
        "spans are sent if unset. URL",
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "LOG_LEVEL", "Minimum severity of log events that are shown."
    )
    log_format: Literal["auto", "console", "json"] = setting(
        "auto", "LOG_FORMAT", "Format of the log; auto is readable text in a terminal and JSON elsewhere."
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class ServerSettings:
    """Where the server listens, under which names, and whose JWTs it accepts beside API keys."""

    host: Annotated[str, Field(min_length=1)] = setting(
        "127.0.0.1", "SERVE_HOST", "Address that `context-builder serve` listens on. address"
    )
    port: Port = setting(8642, "SERVE_PORT", "Port that `context-builder serve` listens on. port")
    grpc_port: Port | None = setting(
        None,
        "SERVE_GRPC_PORT",
        "Port on which `context-builder serve` hosts the services of context packages over gRPC; not hosted if "
        "unset. port",
    )
    names: str = setting("", "SERVE_NAMES", "Further host names that the server answers to, separated by commas. names")
    caller_rate: Rate = setting(
        100.0, "SERVE_CALLER_RATE", "Calls a second of one caller that the server answers. calls a second"
    )
    tenant_rate: Rate = setting(
        400.0, "SERVE_TENANT_RATE", "Calls a second of one tenant that the server answers. calls a second"
    )
    caller_streams: Count = setting(32, "SERVE_CALLER_STREAMS", "Event streams that one caller may have open. streams")
    tenant_streams: Count = setting(128, "SERVE_TENANT_STREAMS", "Event streams that one tenant may have open. streams")
    tenant_requests: Count = setting(
        8,
        "SERVE_TENANT_REQUESTS",
        "Calls of one tenant that the server works on at the same time; further ones wait. calls",
    )
    proxies: Networks = setting(
        "",
        "SERVE_TRUSTED_PROXIES",
        "Addresses of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto the server believes, separated by "
        "commas. addresses or networks, such as 10.0.0.0/8",
    )
    jwks_url: HttpUrl | None = setting(
        None, "AUTH_JWKS_URL", "URL of the JSON Web Key Set whose keys sign the callers' JWTs. URL"
    )
    jwks_file: Path | None = setting(
        None, "AUTH_JWKS_FILE", "File with the JSON Web Key Set, instead of AUTH_JWKS_URL. path"
    )
    audience: str | None = setting(None, "AUTH_AUDIENCE", "Audience (aud) that JWTs must have. text")
    issuer: str | None = setting(None, "AUTH_ISSUER", "Issuer (iss) that JWTs must have. text")


@dataclass(frozen=True, slots=True, config=CONFIG)
class ListenerSettings:
    """How `context-builder listen` authenticates to a transcriber."""

    authorization: SecretStr | None = setting(
        None,
        "LISTEN_AUTHORIZATION",
        "Value of the header Authorization that `context-builder listen --from` sends, e.g. Token abc. text",
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class RecordSettings:
    """How long the record of context packages is kept, and how many events about them."""

    retention: Annotated[int, Field(ge=1, le=3_650)] = setting(
        90, "PACKAGE_RETENTION", "Time that the record keeps context packages. days"
    )
    events_max: Count = setting(
        100_000, "EVENTS_MAX", "Approximate number of events that the Redis stream of events keeps. events"
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class KnowledgeServiceSettings:
    """Which services of context packages run elsewhere, and how long each may take; the others run in the process."""

    retrieval_time: Seconds = setting(
        0.15, "RETRIEVAL_TIME", "Longest wait for each source of a context package. seconds"
    )
    graph_url: GrpcUrl | None = setting(
        None, "KNOWLEDGE_GRAPH_URL", "Knowledge graph over gRPC: grpc://host:port, or grpcs://host:port for TLS. URL"
    )
    vectors_url: GrpcUrl | None = setting(None, "VECTOR_MEMORY_URL", "Vector memory over gRPC. URL")
    index_url: GrpcUrl | None = setting(None, "METADATA_INDEX_URL", "Metadata index over gRPC. URL")
    policy_url: GrpcUrl | None = setting(
        None,
        "MEMORY_POLICY_URL",
        "Policy service over gRPC that decides who may see which sources; while it is down, all sources are "
        "denied. URL",
    )
    redaction_url: GrpcUrl | None = setting(
        None,
        "MEMORY_REDACTION_URL",
        "Redaction service over gRPC; while it is down, texts that need redaction are withheld. URL",
    )
    token: SecretStr | None = setting(
        None,
        "KNOWLEDGE_SERVICE_TOKEN",
        "API key or JWT for the gRPC services: role admin for policy and redaction, role writer for the others. key",
    )
