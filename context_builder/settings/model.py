"""Settings of the language models that read messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import DirectoryPath, Field, SecretStr
from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, HttpUrl, setting
from context_builder.settings.types import PriceTable

Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=CONFIG)
class ModelSettings:
    """Tells where the models and their prompts are, and what they may cost."""

    openai_api_key: SecretStr | None = setting(
        None, "OPENAI_API_KEY", "OpenAI API key; without a key or OPENAI_BASE_URL, plain text analysis is used. key"
    )
    openai_base_url: HttpUrl | None = setting(
        None, "OPENAI_BASE_URL", "Base URL of a server that speaks OpenAI's API, instead of OpenAI's own. URL"
    )
    local_model_url: HttpUrl | None = setting(
        None,
        "LOCAL_MODEL_URL",
        "Base URL of a small local model that reads messages when OpenAI fails or is not set; "
        "`context-builder local-model` serves one. URL",
    )
    prompts_dir: DirectoryPath | None = setting(
        None, "PROMPTS_DIR", "Folder with prompt files that replace those in prompts/, under the same names. path"
    )
    budget_per_hour: Dollars | None = setting(
        None, "LLM_BUDGET_PER_HOUR", "Most that the model calls of this process may cost in an hour. US dollars"
    )
    prices: PriceTable | None = setting(
        None,
        "LLM_PRICES",
        'Model prices instead of list prices: {"MODEL": [prompt, cached, reply]}. JSON, US dollars a million tokens',
    )
