"""The settings choose the analysts: models, the better one first, and plain text analysis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import Analyst
from context_builder.analysis.fallback import FallbackAnalyst
from context_builder.analysis.halving import HalvingAnalyst
from context_builder.analysis.local import LocalAnalyst
from context_builder.analysis.options import TaskConfig
from context_builder.analysis.prompts import load_prompts
from context_builder.analysis.text.analyst import TextAnalyst
from context_builder.costs import Price, Prices
from context_builder.settings.settings import Settings
from context_builder.tokens.counter import TokenCounter
from context_builder.wiring.costs import budget_for, prices_of
from context_builder.wiring.part_description import PartDescription

LOCAL_MODEL: Final = "local"
"""Label of results of the model at LOCAL_MODEL_URL; its server has but one model, whatever it is called."""

LOCAL_PATIENCE: Final = 4
"""Factor by which a model on this machine may exceed LLM_TIMEOUT and KEYWORD_MAX_TOKENS: it is slow and wordy without
anything being wrong, and costs nothing."""


def analysts(
    settings: Settings, executor: Executor | None = None
) -> tuple[Analyst, Analyst, Callable[[str], int], PartDescription]:
    """Return the chain of models and plain text analysis, the latter alone, the token counter, and a description.

    Text is analysed by the ``executor``, or in a thread of this process.
    """
    text = TextAnalyst(executor, is_shared=executor is not None)
    counter, configured = TokenCounter(settings.tasks.summary_model), models(settings)
    if not configured:
        described = PartDescription("plain text analysis, without a language model", "set OPENAI_API_KEY to use one")
        return text, text, counter.count, described
    analyst: Analyst = text
    for model in reversed(configured.values()):
        analyst = FallbackAnalyst(HalvingAnalyst(model, (analyst, text)), analyst)
    assumed = f"tokens of {counter.model} counted as {counter.encoding_name}" if counter.assumed else ""
    failing = "it fails" if len(configured) == 1 else "both fail"
    described = PartDescription(f"{', then '.join(configured)}; plain text analysis when {failing}", assumed)
    return analyst, text, counter.count, described


@asynccontextmanager
async def open_analyst(settings: Settings) -> AsyncIterator[tuple[Analyst, PartDescription]]:
    """Open the configured analyst: the chain of models and plain text analysis."""
    analyst, _, _, described = analysts(settings)
    try:
        yield analyst, described
    finally:
        await analyst.close()


def models(settings: Settings) -> dict[str, Analyst]:
    """Return the models that the settings name, by what the banner calls them, the better one first."""
    configured: dict[str, Analyst] = {}
    if settings.model.openai_api_key is not None or settings.model.openai_base_url is not None:
        label, model = _openai(settings)
        configured[label] = model
    if settings.model.local_model_url is not None:
        label, model = _local(settings.model.local_model_url, settings)
        configured[label] = model
    return configured


def _openai(settings: Settings) -> tuple[str, Analyst]:
    from context_builder.analysis.openai import Endpoint, OpenAIAnalyst  # takes 0.2 s, and is used with a model alone

    model, tasks = settings.model, task_config(settings)
    endpoint = Endpoint(model.openai_api_key.get_secret_value() if model.openai_api_key else "", model.openai_base_url)
    return f"{', '.join(tasks.models)} at {endpoint.label}", OpenAIAnalyst(
        endpoint,
        load_prompts(model.prompts_dir),
        tasks=tasks,
        calls=settings.calls,
        prices=prices_of(settings),
        budget=budget_for(tasks.models, settings),
    )


def task_config(settings: Settings) -> TaskConfig:
    """Return the tasks' options; summary calls hold as much as the sessions give them."""
    return replace(settings.tasks, summary_input=settings.session.summary_input)


def _local(url: str, settings: Settings) -> tuple[str, Analyst]:
    """Return a model on this machine: one call at a time, in small portions, with more patience."""
    from context_builder.analysis.openai import Endpoint, OpenAIAnalyst  # as above

    endpoint = Endpoint(base_url=url, setting="LOCAL_MODEL_URL")
    tasks = replace(
        task_config(settings),
        keyword_model=LOCAL_MODEL,
        domain_model=LOCAL_MODEL,
        summary_model=LOCAL_MODEL,
        compaction_model=LOCAL_MODEL,
        keyword_max_tokens=LOCAL_PATIENCE * settings.tasks.keyword_max_tokens,
    )
    model = OpenAIAnalyst(
        endpoint,
        load_prompts(settings.model.prompts_dir),
        tasks=tasks,
        calls=replace(settings.calls, timeout=LOCAL_PATIENCE * settings.calls.timeout, concurrency=1),
        prices=Prices({LOCAL_MODEL: Price(0.0, 0.0, 0.0)}),
        name=LOCAL_MODEL,
    )
    return endpoint.label, LocalAnalyst(model)
