"""What tokens cost, and how prices are set."""

from __future__ import annotations

import pytest

from context_builder.costs import LIST_PRICES, Price, Prices, Usage
from context_builder.errors import SettingError
from context_builder.settings.settings import Settings, load_settings


def settings(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def test_cached_tokens_are_cheaper_and_are_not_counted_twice() -> None:
    assert Price(2.0, 1.0, 10.0).of(1_000_000, 100_000, cached_tokens=400_000) == pytest.approx(1.2 + 0.4 + 1.0)


def test_the_default_models_have_list_prices() -> None:
    defaults = settings().tasks
    assert set(defaults.models) <= set(LIST_PRICES)


def test_a_model_without_a_price_is_counted_and_said_so() -> None:
    usage = Prices().priced(Usage("mystery", prompt_tokens=1000, calls=2))
    assert (usage.dollars, usage.unpriced, usage.prompt_tokens) == (0.0, 2, 1000)


def test_own_prices_stand_beside_and_instead_of_listed_ones() -> None:
    prices = Prices({"gpt-4o": Price(1.0, 1.0, 1.0), "mystery": Price(0.0, 0.0, 0.0)})
    assert prices.priced(Usage("gpt-4o", prompt_tokens=1_000_000, calls=1)).dollars == 1.0
    assert prices.priced(Usage("mystery", prompt_tokens=1_000_000, calls=1)).unpriced == 0


def test_usage_adds_up_under_every_models_name() -> None:
    both = Usage("gpt-4o", 10, 5, 2, 1, 0.5) + Usage("local", 1, 0, 1, 1, 0.0, 1) + Usage()
    assert both == Usage("gpt-4o + local", 11, 5, 3, 2, 0.5, 1)


def test_prices_are_set_as_json() -> None:
    assert settings(LLM_PRICES='{"mystery": [1, 0.5, 4]}').model.prices == {"mystery": (1.0, 0.5, 4.0)}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be an object"),
        ('{"mystery": [1, 2]}', "mystery must have three prices"),
        ('{"mystery": [1, 2, -3]}', "greater than or equal to 0"),
        ('{"mystery": [1, 2, "much"]}', "must be a number"),
    ],
)
def test_a_wrong_price_table_names_its_setting(value: str, fault: str) -> None:
    with pytest.raises(SettingError, match=f"^LLM_PRICES: .*{fault}"):
        settings(LLM_PRICES=value)


@pytest.mark.parametrize("value", ["0", "-1", "inf", "much"])
def test_a_wrong_budget_names_its_setting(value: str) -> None:
    with pytest.raises(SettingError, match=r"^LLM_BUDGET_PER_HOUR: "):
        settings(LLM_BUDGET_PER_HOUR=value)
