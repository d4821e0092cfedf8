"""Options tell where a model is, how each task asks it, and how its calls are made."""

from __future__ import annotations

from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from typing import Final
from urllib.parse import urlsplit

from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, Count, ModelName, Seconds, Temperature, setting

SUMMARY_INPUT_TOKENS: Final = 12_000
"""Default that a session, which asks for summaries, shares with the model that writes them."""


@plain_dataclass(frozen=True, slots=True)
class TaskOptions:
    """The options of one task; ``max_tokens`` bounds a reply in English (of keywords: for each message)."""

    model: str
    temperature: float
    max_tokens: int


@dataclass(frozen=True, slots=True, config=CONFIG)
class TaskConfig:
    """The options of each task.

    One call for a summary is given at most ``summary_input`` tokens of messages and known points.
    """

    keyword_model: ModelName = setting("gpt-4o-mini", "KEYWORD_MODEL", "Model that extracts keywords. name")
    keyword_temperature: Temperature = setting(
        0.2, "KEYWORD_TEMPERATURE", "Sampling temperature of keyword calls; low keeps keywords consistent. 0 to 2"
    )
    keyword_max_tokens: Count = setting(
        100, "KEYWORD_MAX_TOKENS", "Maximum length of the reply of a keyword call, for each message in the call. tokens"
    )
    domain_model: ModelName = setting("gpt-4o-mini", "DOMAIN_MODEL", "Model that infers academic domains. name")
    domain_temperature: Temperature = setting(
        0.2, "DOMAIN_TEMPERATURE", "Sampling temperature of domain calls; low keeps domains from flickering. 0 to 2"
    )
    domain_max_tokens: Count = setting(400, "DOMAIN_MAX_TOKENS", "Maximum length of the reply of a domain call. tokens")
    summary_model: ModelName = setting("gpt-4o", "SUMMARY_MODEL", "Model that writes the points of summaries. name")
    summary_temperature: Temperature = setting(
        0.3, "SUMMARY_TEMPERATURE", "Sampling temperature of summary calls; low keeps points close to the text. 0 to 2"
    )
    summary_max_tokens: Count = setting(
        3000, "SUMMARY_REPLY_TOKENS", "Maximum length of the reply of a summary call. tokens"
    )
    compaction_model: ModelName | None = setting(
        None,
        "COMPACTION_MODEL",
        "Model that brings old points of summaries together, which are checked by code; default: KEYWORD_MODEL. name",
    )
    summary_input: Count = SUMMARY_INPUT_TOKENS

    @property
    def keywords(self) -> TaskOptions:
        return TaskOptions(self.keyword_model, self.keyword_temperature, self.keyword_max_tokens)

    @property
    def domains(self) -> TaskOptions:
        return TaskOptions(self.domain_model, self.domain_temperature, self.domain_max_tokens)

    @property
    def summary(self) -> TaskOptions:
        return TaskOptions(self.summary_model, self.summary_temperature, self.summary_max_tokens)

    @property
    def compaction(self) -> TaskOptions:
        model = self.compaction_model or self.keyword_model
        return TaskOptions(model, self.summary_temperature, self.summary_max_tokens)

    @property
    def verification(self) -> TaskOptions:
        return self.keywords

    @property
    def preferences(self) -> TaskOptions:
        return TaskOptions(self.keyword_model, self.keyword_temperature, self.domain_max_tokens)

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of all models, each once."""
        asked = (self.keywords, self.domains, self.summary, self.compaction)
        return tuple(dict.fromkeys(options.model for options in asked))


@dataclass(frozen=True, slots=True, config=CONFIG)
class CallOptions:
    """Timeouts, retries and limits of model calls.

    ``timeout`` (seconds) holds for one try. Between tries the wait grows from ``first_wait`` to
    ``longest_wait`` seconds, with jitter; a server that asks for a longer one is not tried again.
    ``concurrency`` bounds the requests in flight of all sessions that share the analyst, whose tenants take turns.
    """

    timeout: Seconds = setting(30.0, "LLM_TIMEOUT", "Timeout of one attempt of a model call. seconds")
    attempts: Count = setting(
        3, "LLM_ATTEMPTS", "Attempts of a model call before plain text analysis answers instead. number"
    )
    concurrency: Count = setting(
        8, "LLM_CONCURRENCY", "Maximum model calls of this process in flight at the same time. number"
    )
    first_wait: float = 0.25
    longest_wait: float = 10.0


@plain_dataclass(frozen=True, slots=True)
class Endpoint:
    """Names a server that speaks OpenAI's API; OpenAI itself without a ``base_url``, which ``setting`` names."""

    api_key: str = field(default="", repr=False)
    base_url: str | None = field(default=None, repr=False)
    setting: str = "OPENAI_BASE_URL"

    @property
    def shows_schema(self) -> bool:
        """Return whether the model is shown the schema of its reply: OpenAI does that, while a server that makes a
        grammar of it leaves the model to guess at what is meant."""
        return self.base_url is None or urlsplit(self.base_url).hostname == "api.openai.com"

    @property
    def label(self) -> str:
        """Return the endpoint's name for people, free of credentials."""
        if self.base_url is None:
            return "OpenAI"
        parts = urlsplit(self.base_url)
        return f"the model server at {parts.netloc.rpartition('@')[2]}"
