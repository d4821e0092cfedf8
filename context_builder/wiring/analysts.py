"""What reads messages, as the settings want it: models, the better one first, and plain text analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from context_builder.analysis.analyst import Analyst
from context_builder.analysis.budget import Budget, Price, Prices
from context_builder.analysis.text.analyst import TextAnalyst
from context_builder.errors import SettingError
from context_builder.settings.settings import Settings
from context_builder.tokens.compact import count_tokens_compact
from context_builder.tokens.counter import TokenCounter
from context_builder.wiring.embedded import Described

LOCAL_MODEL: Final = "local"
"""What readings of the model at LOCAL_MODEL_URL are labelled; its server has but one model, whatever it is called."""

LOCAL_PATIENCE: Final = 4
"""So many times LLM_TIMEOUT a model on this machine may take, and so many times KEYWORD_MAX_TOKENS: it is slow and
wordy without anything being wrong, and costs nothing."""


def analysts(settings: Settings) -> tuple[Analyst, Analyst, Callable[[str], int], Described]:
    """The chain of models and plain text analysis, the latter alone, what counts tokens, and the chain described."""
    text = TextAnalyst()
    models = _models(settings)
    if not models:
        described = Described("plain text analysis in this process", "set OPENAI_API_KEY for a language model")
        return text, text, count_tokens_compact, described
    from context_builder.analysis.fallback import FallbackAnalyst

    analyst: Analyst = text
    for model in reversed(models.values()):
        analyst = FallbackAnalyst(model, analyst)
    counter = TokenCounter(settings.summary_model)
    assumed = f"tokens of {counter.model} counted as {counter.encoding_name}" if counter.assumed else ""
    failing = "it fails" if len(models) == 1 else "both fail"
    described = Described(f"{', then '.join(models)}; plain text analysis when {failing}", assumed)
    return analyst, text, counter.count, described


def _models(settings: Settings) -> dict[str, Analyst]:
    """The models that the settings name, by what the banner calls them, the better one first."""
    models: dict[str, Analyst] = {}
    if settings.openai_api_key is not None or settings.openai_base_url is not None:
        label, model = _openai(settings)
        models[label] = model
    if settings.local_model_url is not None:
        label, model = _local(settings.local_model_url, settings)
        models[label] = model
    return models


def _openai(settings: Settings) -> tuple[str, Analyst]:
    from context_builder.analysis.openai import CallOptions, Endpoint, OpenAIAnalyst, TaskOptions, Tasks
    from context_builder.analysis.prompts import load_prompts

    endpoint = Endpoint(
        settings.openai_api_key.get_secret_value() if settings.openai_api_key else "", settings.openai_base_url
    )
    tasks = Tasks(
        TaskOptions(settings.keyword_model, settings.keyword_temperature, settings.keyword_max_tokens),
        TaskOptions(settings.domain_model, settings.domain_temperature, settings.domain_max_tokens),
        TaskOptions(settings.summary_model, settings.summary_temperature, settings.summary_max_tokens),
        settings.summary_input_tokens,
        TaskOptions(settings.keyword_model, settings.keyword_temperature, settings.domain_max_tokens),
    )
    calls = CallOptions(
        timeout=settings.llm_timeout, attempts=settings.llm_attempts, concurrency=settings.llm_concurrency
    )
    prices = Prices({model: Price(*dollars) for model, dollars in (settings.llm_prices or {}).items()})
    names = list(dict.fromkeys([settings.keyword_model, settings.domain_model, settings.summary_model]))
    return f"{', '.join(names)} at {endpoint.label}", OpenAIAnalyst(
        endpoint,
        load_prompts(settings.prompts_dir),
        tasks=tasks,
        calls=calls,
        prices=prices,
        budget=_budget(settings.llm_budget_per_hour, names, prices),
    )


def _budget(per_hour: float | None, models: Sequence[str], prices: Prices) -> Budget | None:
    """The hourly budget, if there is one. Raises :class:`SettingError` where it could not be kept."""
    if per_hour is None:
        return None
    for model in models:
        if model not in prices:
            raise SettingError(
                f"LLM_BUDGET_PER_HOUR: cannot be kept, because the price of {model} is not known; "
                "name it in LLM_PRICES ([0, 0, 0] if it is free)"
            )
    return Budget(per_hour)


def _local(url: str, settings: Settings) -> tuple[str, Analyst]:
    """A model on this machine: one call at a time, in small portions, with more patience."""
    from context_builder.analysis.local import LocalAnalyst
    from context_builder.analysis.openai import CallOptions, Endpoint, OpenAIAnalyst, TaskOptions, Tasks
    from context_builder.analysis.prompts import load_prompts

    endpoint = Endpoint(base_url=url, setting="LOCAL_MODEL_URL")
    tasks = Tasks(
        TaskOptions(LOCAL_MODEL, settings.keyword_temperature, LOCAL_PATIENCE * settings.keyword_max_tokens),
        TaskOptions(LOCAL_MODEL, settings.domain_temperature, settings.domain_max_tokens),
        TaskOptions(LOCAL_MODEL, settings.summary_temperature, settings.summary_max_tokens),
    )
    calls = CallOptions(timeout=LOCAL_PATIENCE * settings.llm_timeout, attempts=settings.llm_attempts, concurrency=1)
    model = OpenAIAnalyst(
        endpoint,
        load_prompts(settings.prompts_dir),
        tasks=tasks,
        calls=calls,
        prices=Prices({LOCAL_MODEL: Price(0.0, 0.0, 0.0)}),
        name=LOCAL_MODEL,
    )
    return endpoint.label, LocalAnalyst(model)
