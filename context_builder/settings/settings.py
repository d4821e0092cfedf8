"""The only reader of the environment.

Every setting is a field below with its default, its unit and one line of why; ``.env.example``
is generated from them (``context-builder settings --env``). A setting is read from the
environment or from ``.env`` under its name in capitals; with the prefix ``CONTEXT_BUILDER_``
it wins over the plain name, which other programs may share. A wrong value, or an unknown name
with the prefix, is a :class:`~context_builder.errors.SettingError` that names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

from dotenv import dotenv_values
from pydantic import BaseModel, ConfigDict, DirectoryPath, Field, SecretStr, ValidationError, model_validator

from context_builder.errors import SettingError
from context_builder.settings.types import (
    Count,
    HttpUrl,
    ModelName,
    PostgresUrl,
    PriceTable,
    RedisUrl,
    Seconds,
    Share,
    Temperature,
    supabase_role,
)

PREFIX: Final = "CONTEXT_BUILDER_"


class Settings(BaseModel):
    """Everything that can be set, with the documented defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Redis: the queue and the published state
    redis_url: RedisUrl | None = Field(None, description="Redis or Valkey; wins over REDIS_HOST. URL")
    redis_host: str | None = Field(None, description="Redis host, when there is no REDIS_URL. name")
    redis_port: int = Field(6379, ge=1, le=65535, description="Redis port, with REDIS_HOST. number")
    redis_password: SecretStr | None = Field(None, description="Redis password, with REDIS_HOST. text")
    embedded_redis_password: bool = Field(
        default=True,
        description="The embedded Redis asks for a password; false: it is open to every user here. true or false",
    )

    # The archive of summaries
    supabase_url: HttpUrl | None = Field(None, description="Supabase project that archives summaries. URL")
    supabase_key: SecretStr | None = Field(None, description="Its service key; an anon key cannot write. key")
    database_url: PostgresUrl | None = Field(None, description="PostgreSQL archive, when there is no Supabase. URL")

    # The long-term memory
    feed_memory: bool = Field(
        default=True, description="Remember what was summarized, so that it can be found later. true or false"
    )
    tenant_id: str = Field(
        "default", min_length=1, description="Whose memories they are; tenants see only their own. id"
    )
    embedding_model: ModelName | None = Field(
        None, description="Model that finds memories by meaning; without it, by their words alone. name"
    )
    embedding_base_url: HttpUrl | None = Field(None, description="Where it is, if not at OPENAI_BASE_URL. URL")
    embedding_api_key: SecretStr | None = Field(
        None, description="Its key; OPENAI_API_KEY is for the server at OPENAI_BASE_URL alone. key"
    )
    embedding_query_prefix: str = Field("", description="What the model wants before a query, as E5's do. text")
    embedding_passage_prefix: str = Field("", description="What it wants before what is to be found. text")
    embedding_input_types: bool = Field(
        default=False, description="Tell its server input_type, query or passage, instead. true or false"
    )
    embedding_query_time: Seconds = Field(
        0.2, description="A query is embedded within this time, or looked for by its words alone. seconds"
    )
    sa01_soma_base_url: HttpUrl | None = Field(
        None, description="SomaBrain server that keeps the memories instead of the archive's database. URL"
    )
    sa01_soma_timeout_seconds: Seconds = Field(30.0, description="A call to it is given up after this long. seconds")
    sa01_soma_max_retries: int = Field(2, ge=0, description="Further tries of a call that failed. number")
    sa01_soma_retry_base_ms: float = Field(
        150.0, gt=0, le=60000, allow_inf_nan=False, description="First wait between tries; it doubles. milliseconds"
    )
    sa01_namespace: str | None = Field(None, description="Universe in SomaBrain that the memories live in. name")
    sa01_memory_namespace: str = Field("wm", description="Part of it that holds them. name")

    # The model
    openai_api_key: SecretStr | None = Field(None, description="Without it, plain text analysis does the work. key")
    openai_base_url: HttpUrl | None = Field(None, description="Any server that speaks OpenAI's API. URL")
    local_model_url: HttpUrl | None = Field(
        None, description="Small model that stands in for OpenAI, see context-builder local-model. URL"
    )
    keyword_model: ModelName = Field("gpt-4o-mini", description="Model that extracts keywords. name")
    keyword_temperature: Temperature = Field(0.2, description="Low, so that keywords are consistent. 0 to 2")
    keyword_max_tokens: Count = Field(100, description="Reply limit for each message of a keyword call. tokens")
    domain_model: ModelName = Field("gpt-4o-mini", description="Model that infers the domains. name")
    domain_temperature: Temperature = Field(0.2, description="Low, so that domains do not flicker. 0 to 2")
    domain_max_tokens: Count = Field(400, description="Reply limit of a domain call. tokens")
    summary_model: ModelName = Field("gpt-4o", description="Model that writes summary points. name")
    summary_temperature: Temperature = Field(0.3, description="Low, so that points stay close to what was said. 0 to 2")
    summary_max_tokens: Count = Field(1000, description="Budget of the rolling summary, and of a reply. tokens")
    summary_input_tokens: Count = Field(12000, description="Most messages and known points in one summary call. tokens")
    llm_timeout: Seconds = Field(30.0, description="A model call is given up after this long. seconds")
    llm_attempts: Count = Field(3, description="Tries of a model call before the fallback answers. number")
    llm_concurrency: Count = Field(8, description="Model calls in flight at once in this process. number")
    prompts_dir: DirectoryPath | None = Field(
        None, description="Folder with prompts of your own, under the names that prompts/ has. path"
    )
    llm_concurrency_per_session: Count = Field(4, description="Model calls in flight at once in a session. number")
    llm_budget_per_hour: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Most that model calls of this process may cost an hour. US dollars",
    )
    llm_prices: PriceTable | None = Field(
        None,
        description='Instead of list prices: {"MODEL": [prompt, cached, reply]}. JSON, US dollars a million tokens',
    )
    keyword_batch: Count = Field(20, description="Most messages in one keyword call. messages")
    keyword_batch_window: float = Field(
        0.05, ge=0, le=60, description="While a keyword call is under way, others wait this long for company. seconds"
    )

    # When things happen
    poll_interval: Seconds = Field(0.5, description="How often the session ticks when nothing comes. seconds")
    raw_buffer_time_window: Seconds = Field(
        120.0, description="Age of the oldest message that starts a summary. seconds"
    )
    raw_buffer_max_messages: Count = Field(1000, description="Most messages in the published buffer. messages")
    raw_buffer_max_bytes: Count = Field(
        4194304, description="Room for it as JSON; older messages are pending, the newest always stays. bytes"
    )
    summary_keep_last: int = Field(0, ge=0, description="Newest messages that a summary leaves in the buffer. messages")
    domain_inference_interval: Count = Field(5, description="New messages that start a domain inference. messages")
    domain_inference_time_interval: Seconds = Field(
        30.0, description="Time after which one new message is enough for it. seconds"
    )
    domain_skip: bool = Field(
        default=True, description="No model call for domains while text analysis is sure nothing changed. true or false"
    )
    silence_threshold: Seconds = Field(4.0, description="Nobody spoke for this long: silence. seconds")
    summary_retry_interval: Seconds = Field(15.0, description="Wait after a failed summary. seconds")

    # What is kept, and for how long
    state_ttl: Seconds = Field(3600.0, description="Life of the published state after the last write. seconds")
    conversation_state_ttl: Seconds = Field(10.0, description="Life of the conversation state. seconds")
    session_retention: Seconds = Field(604800.0, description="A finished session is kept this long. seconds")
    lease_time: Seconds = Field(10.0, description="A dead owner blocks its session this long at most. seconds")
    consilience_responses_max: Count = Field(100, description="Newest assistant responses in the state. messages")
    max_message_bytes: Count = Field(262144, description="A larger message goes to the dead letters. bytes")
    dead_letters_max: Count = Field(
        1000, description="Newest dead letters kept of the input and of each outbox. messages"
    )
    dead_letters_max_bytes: Count = Field(
        67108864, description="Room for them; the oldest make way, the newest always stays. bytes"
    )
    pending_max_messages: Count = Field(
        5000, description="More than this waiting for a failing model: plain text analysis takes them. messages"
    )
    pending_max_tokens: Count = Field(500000, description="The same; a token is taken to be three bytes. tokens")

    # Prompts: what `build` and ContextBuilder make
    context_max_tokens: Count = Field(4000, description="Most tokens of a prompt. tokens")
    context_model: ModelName | None = Field(
        None, description="Model that reads it; its window is then the limit instead. name"
    )
    context_window: Count | None = Field(None, description="Window of CONTEXT_MODEL, where it is not known. tokens")
    context_reply_tokens: Count = Field(1000, description="Left free of the window for the reply. tokens")
    context_top_k: Count = Field(8, description="Memories in a prompt. memories")
    context_top_k_degraded: Count = Field(3, description="The same for a while after the memory failed. memories")
    context_threshold: Share = Field(0.5, description="A memory less similar to the query is left out. 0 to 1")
    context_similarity_weight: Share = Field(0.7, description="How much similarity counts in a memory's score. 0 to 1")
    context_recency_weight: Share = Field(0.3, description="How much its freshness counts. 0 to 1")
    context_recency_days: float = Field(
        30.0, gt=0, allow_inf_nan=False, description="Age at which freshness is down to 0.37 (1/e). days"
    )
    context_feedback_weight: Share = Field(0.0, description="How much it counts whether it helped before. 0 to 1")
    context_by_query: bool = Field(
        default=False, description="The kind of query chooses weights and what is kept first. true or false"
    )
    context_choose: Literal["greedy", "knapsack"] = Field(
        "greedy", description="Memories that do not all fit: the best first, or the most worth together."
    )
    context_scope: Literal["tenant", "session"] = Field("tenant", description="Whose memories are searched.")
    context_deadline: Seconds = Field(0.3, description="A memory is waited for this long. seconds")
    context_degraded_window: Seconds = Field(15.0, description="After a failure less is asked for so long. seconds")
    context_down_window: Seconds = Field(60.0, description="After too many failures nothing is, for so long. seconds")
    context_failures_until_down: Count = Field(5, description="So many failures are too many. number")
    context_store_summaries: bool = Field(
        default=True, description="What leaves a prompt is remembered in short. true or false"
    )
    context_summarizer: Literal["extract", "analyst"] = Field(
        "extract", description="How: in its own words, or in points of what reads messages (OPENAI_…, LOCAL_MODEL_URL)."
    )
    context_preferences: Literal["patterns", "analyst"] = Field(
        "analyst", description="Preferences in messages: by their words, or by the model (OPENAI_…) where there is one."
    )
    context_summary_chars: Count = Field(1024, description="Longest such summary. characters")
    context_cache_time: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="The same turn gets the same prompt for so long; 0: never. seconds"
    )
    context_cache_size: Count = Field(1000, description="Most prompts kept for that. prompts")
    context_preload: bool = Field(
        default=False, description="Load tokenizer, redactor and connections before the first turn. true or false"
    )
    context_redact: Literal["none", "secrets", "personal", "all"] = Field(
        "none",
        description="What is masked in prompts and in all that is remembered; personal data needs the extra pii.",
    )
    context_redact_user_message: bool = Field(
        default=False, description="The turn's own message is masked too, also for the memory. true or false"
    )

    # This program
    home: Path | None = Field(None, description="Data folder of the embedded engines; default: the user's. path")
    record_dir: Path | None = Field(
        None, description="Folder in which every session is recorded, what people say included. path"
    )
    http_port: int | None = Field(None, ge=1, le=65535, description="Serve /metrics, /livez, /readyz here. port")
    http_host: str = Field("127.0.0.1", description="Address that HTTP_PORT listens on. address")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe log event shown.")
    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="auto: readable in a terminal, else JSON."
    )

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if self.supabase_url and not self.supabase_key:
            raise ValueError("SUPABASE_KEY: is missing, but SUPABASE_URL is set")
        if self.supabase_key and not self.supabase_url:
            raise ValueError("SUPABASE_URL: is missing, but SUPABASE_KEY is set")
        if self.supabase_key and supabase_role(self.supabase_key.get_secret_value()) == "anon":
            raise ValueError("SUPABASE_KEY: is an anon key, which cannot write; use the service key")
        if self.embedding_model and not (
            self.embedding_base_url or self.openai_base_url or self.embedding_api_key or self.openai_api_key
        ):
            raise ValueError("EMBEDDING_API_KEY: is missing, and so is OPENAI_API_KEY")
        if self.conversation_state_ttl <= self.poll_interval:
            raise ValueError("POLL_INTERVAL: must be below CONVERSATION_STATE_TTL, or the state would expire")
        if self.lease_time <= 2 * self.poll_interval:
            raise ValueError("LEASE_TIME: must be more than twice POLL_INTERVAL, or the lease would expire")
        if self.summary_keep_last >= self.raw_buffer_max_messages:
            raise ValueError("SUMMARY_KEEP_LAST: must be below RAW_BUFFER_MAX_MESSAGES")
        return self


def load_settings(
    environ: Mapping[str, str] | None = None, *, env_file: Path | None = Path(".env"), **overrides: object
) -> Settings:
    """Settings from ``overrides``, the environment and the ``.env`` file, in this order of precedence.

    An empty value counts as not set. Raises :class:`SettingError` naming the first wrong setting.
    """
    environ = os.environ if environ is None else environ
    from_file = dotenv_values(env_file) if env_file is not None and env_file.is_file() else {}
    known = {name.upper(): name for name in Settings.model_fields}
    values: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for source in (from_file, environ):
        for name in _unknown(source, known):
            raise SettingError(f"{name}: unknown setting{_suggestion(name, known)}")
        for capital, field in known.items():
            for name in (capital, PREFIX + capital) if capital != "HOME" else (PREFIX + capital,):
                if source.get(name):
                    values[field], spelled[field] = source[name], name
    values.update({name: value for name, value in overrides.items() if value is not None})
    try:
        return Settings(**values)
    except ValidationError as error:
        raise SettingError(_first_line(error, spelled)) from None


def _unknown(source: Mapping[str, str | None], known: Mapping[str, str]) -> Iterable[str]:
    return sorted(name for name in source if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in known)


def _suggestion(name: str, known: Mapping[str, str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name.removeprefix(PREFIX), known, n=1)
    return f"; did you mean {PREFIX}{close[0]}?" if close else ""


def misspelt(env_file: Path = Path(".env")) -> list[tuple[str, str]]:
    """Names in the file that are no setting but look like one, each with the setting it looks like.

    The file is written for this program, mostly; the environment is not, and is left alone.
    """
    from difflib import get_close_matches

    known = [name.upper() for name in Settings.model_fields if name != "home"]
    names = dotenv_values(env_file) if env_file.is_file() else {}
    others = [name for name in names if name not in known and not name.startswith(PREFIX)]
    looks_like = ((name, get_close_matches(name.upper(), known, n=1, cutoff=0.85)) for name in others)
    return [(name, close[0]) for name, close in looks_like if close]


def _first_line(error: ValidationError, spelled: Mapping[str, str]) -> str:
    """The first thing wrong, as ``NAME: what is wrong``, without the value (it may be a secret)."""
    first = error.errors(include_url=False, include_input=False)[0]
    text = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return text
    field = str(first["loc"][0])
    return f"{spelled.get(field, field.upper())}: {text[:1].lower()}{text[1:]}"
