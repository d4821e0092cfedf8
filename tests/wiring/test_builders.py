"""Settings become the builder that makes prompts."""

from __future__ import annotations

from dataclasses import fields

import pytest
from structlog.testing import capture_logs

from context_builder.assembly import AssemblyConfig
from context_builder.assembly.budget import token_limit
from context_builder.errors import AnalystUnavailable, SettingError
from context_builder.memory.memory import Memory
from context_builder.settings.settings import Settings, load_settings
from context_builder.testing import InMemoryStore, StubAnalyst
from context_builder.wiring.builders import assembly_rules_of, builder_of, counter_of, open_builder
from context_builder.wiring.costs import budget_for
from context_builder.wiring.database import database_of
from context_builder.wiring.part_description import PartDescription
from context_builder.wiring.stores import memory_of
from tests.services.model_server import ModelServer

TURN = {"user_message": "Mail ann@example.org about it", "history": [{"role": "user", "content": "ann@example.org"}]}


def settings(**environ: str) -> Settings:
    return load_settings({"EMBEDDED_EMBEDDINGS": "false"} | environ, env_file=None)


def test_without_settings_the_rules_are_the_documented_ones() -> None:
    assert assembly_rules_of(settings()) == AssemblyConfig()


OTHER = AssemblyConfig(
    max_prompt_tokens=1, window=3000, reply_tokens=2, margin=0.3, by_query=True, top_k=3, top_k_degraded=4,
    threshold=0.1, similarity_weight=0.2, recency_weight=0.4, recency_days=5.0, feedback_weight=0.6, deadline=7.0,
    degraded_window=8.0, down_window=9.0, failures_until_down=10, summary_chars=11, store_summaries=False,
    choose="knapsack", scope="session", redact_user_message=True, cache_seconds=12.0, cache_size=13,
)  # fmt: skip
OTHERWISE_NAMED = {"max_prompt_tokens": "max_tokens", "cache_seconds": "cache_time"}


def test_every_rule_but_those_of_work_beside_the_turns_is_a_setting() -> None:
    named = {field.name: str(getattr(OTHER, field.name)) for field in fields(AssemblyConfig)}
    environ = {f"CONTEXT_{OTHERWISE_NAMED.get(name, name)}".upper(): value for name, value in named.items()}
    for beside in ("CONTEXT_BACKGROUND_TIMEOUT", "CONTEXT_BACKGROUND_MAX"):
        del environ[beside]
    assert assembly_rules_of(settings(CONTEXT_MODEL="mine", **environ)) == OTHER


@pytest.mark.parametrize(("preload", "searches"), [("false", 0), ("true", 1)])
async def test_a_builder_is_warmed_up_where_that_is_set(
    preload: str, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = InMemoryStore()
    monkeypatch.setattr("context_builder.wiring.stores.memory_of", lambda *_: (store, PartDescription("memory")))
    async with open_builder(settings(CONTEXT_PRELOAD=preload)):
        assert len(store.searches) == searches


async def test_without_a_memory_nothing_is_started_that_embeds(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Settings] = []

    async def start(settings: Settings) -> None:
        started.append(settings)

    monkeypatch.setattr("context_builder.wiring.builders.start_embeddings", start)
    async with open_builder(settings(CONTEXT_PRELOAD="true", MEMORY="off")):
        assert started == []


def test_the_models_window_is_the_limit() -> None:
    known = settings(CONTEXT_MODEL="gpt-4o", CONTEXT_REPLY_TOKENS="2000")
    assert token_limit(assembly_rules_of(known)) == 126_000
    mine = {"CONTEXT_MODEL": "mine", "CONTEXT_WINDOW": "3000"}
    assert token_limit(assembly_rules_of(settings(**mine, CONTEXT_MARGIN="0"))) == 2000


@pytest.mark.parametrize("model", ["gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro", "meta-llama/llama-3.1-8b", "mine"])
async def test_a_model_of_another_encoding_is_told_and_keeps_a_margin(model: str) -> None:
    chosen = settings(CONTEXT_MODEL=model, CONTEXT_WINDOW="11000")
    assert token_limit(assembly_rules_of(chosen)) == token_limit(assembly_rules_of(chosen), 10**6) == 6_000
    with capture_logs() as logs:
        async with open_builder(chosen):
            pass
    (told,) = (entry for entry in logs if entry["event"] == "prompt.encoding_assumed")
    assert (told["counted"], told["margin"]) == (f"o200k_base, assumed for {model}", 0.4)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "o3", "gpt-5"])
async def test_a_model_of_the_shipped_encoding_has_all_of_its_window_in_silence(model: str) -> None:
    chosen = settings(CONTEXT_MODEL=model, CONTEXT_WINDOW="11000")
    assert token_limit(assembly_rules_of(chosen)) == 10_000
    with capture_logs() as logs:
        async with open_builder(chosen):
            pass
    assert [entry for entry in logs if entry["event"] == "prompt.encoding_assumed"] == []


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"CONTEXT_MODEL": "mine"}, "CONTEXT_MODEL: the window of mine is not known; set CONTEXT_WINDOW"),
        ({"CONTEXT_MODEL": "gpt-4", "CONTEXT_REPLY_TOKENS": "9000"}, "CONTEXT_REPLY_TOKENS: must be below"),
    ],
)
def test_a_window_that_cannot_be_is_refused(environ: dict[str, str], told: str) -> None:
    with pytest.raises(SettingError, match=told):
        assembly_rules_of(settings(**environ))


TRIMMED = [{"role": "user", "name": "Ann", "content": f"We measured {n} whales at dawn"} for n in range(20)]


async def test_an_analyst_sums_up_what_leaves_a_prompt() -> None:
    analyst, store = StubAnalyst(), InMemoryStore()
    made = builder_of(settings(), store, analyst)
    await made.build_for_turn({"user_message": "And now?", "history": TRIMMED}, 100)
    await made.drain()
    (kept,) = store.kept["default"].values()
    assert kept.text.startswith("We measured 0 whales at dawn | We measured 1 whales")
    assert len(kept.text) <= 1024
    assert {said.speaker for said in analyst.summary_calls[0].messages} == {"Ann"}


async def test_an_analyst_is_never_in_the_way_of_a_turn() -> None:
    analyst, store = StubAnalyst(), InMemoryStore()
    analyst.gate.clear()
    made = builder_of(settings(), store, analyst)
    assert (await made.build_for_turn({"user_message": "And now?", "history": TRIMMED}, 100)).history
    analyst.failure = AnalystUnavailable("away")
    analyst.gate.set()
    await made.drain()
    (kept,) = store.kept["default"].values()
    assert kept.text.startswith("user: We measured 0 whales at dawn | user:")


@pytest.mark.parametrize(("summarizer", "label"), [("extract", "user: We"), ("analyst", "We measured")])
async def test_who_sums_up_is_a_setting(summarizer: str, label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryStore()
    monkeypatch.setattr("context_builder.wiring.stores.memory_of", lambda *_: (store, PartDescription("memory")))
    async with open_builder(settings(CONTEXT_SUMMARIZER=summarizer)) as (made, _):
        await made.build_for_turn({"user_message": "And now?", "history": TRIMMED}, 100)
    (kept,) = store.kept["default"].values()
    assert kept.text.startswith(label)


@pytest.mark.parametrize(("model", "assumed"), [(None, False), ("gpt-4o", False), ("llama-3.1-8b", True)])
def test_tokens_are_counted_as_the_model_that_reads_them_does(model: str | None, assumed: bool) -> None:
    assert counter_of(settings(**({"CONTEXT_MODEL": model} if model else {}))).assumed is assumed


@pytest.mark.parametrize(
    ("redact", "shown"),
    [("none", "ann@example.org"), ("secrets", "ann@example.org"), ("personal", "<EMAIL_ADDRESS>"), ("all", "<EMAIL")],
)
async def test_what_is_to_be_masked_is(redact: str, shown: str) -> None:
    built = await builder_of(settings(CONTEXT_REDACT=redact), None).build_for_turn(TURN)
    assert shown in built.messages[1]["content"]


@pytest.mark.parametrize(
    ("environ", "preferred"),
    [
        ({}, ["Prefers green tea"]),
        ({"CONTEXT_PREFERENCES": "patterns"}, ["Prefers long answers"]),
        ({"OPENAI_BASE_URL": ""}, ["Prefers long answers"]),
    ],
)
async def test_a_model_that_is_configured_is_asked_for_preferences(
    environ: dict[str, str], preferred: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = InMemoryStore()
    texts = ("I prefer long answers.", "I am fond of green tea.")
    said = [Memory(f"m{number}", text, user_id="ann", position=number) for number, text in enumerate(texts)]
    await store.remember("default", said)
    monkeypatch.setattr("context_builder.wiring.stores.memory_of", lambda *_: (store, PartDescription("memory")))
    with ModelServer() as server:
        named = {"OPENAI_BASE_URL": server.base_url, "CONTEXT_DEADLINE": "5"} | environ
        async with open_builder(settings(**{name: value for name, value in named.items() if value})) as (made, _):
            await made.preferences("ann")
            await made.drain()
            assert [one.text for one in await made.preferences("ann")] == preferred


async def test_all_that_a_process_opens_spends_from_one_hour() -> None:
    spent = settings(
        LLM_BUDGET_PER_HOUR="0.25", LLM_PRICES='{"e5": [0, 0, 0]}', OPENAI_API_KEY="sk", EMBEDDING_MODEL="e5"
    )
    daemon, builder = budget_for(["gpt-4o"], spent), budget_for(["e5"], spent)
    assert daemon is not None
    assert daemon is builder
    chosen = settings(LLM_BUDGET_PER_HOUR="0.25", OPENAI_API_KEY="sk", EMBEDDING_MODEL="mine")
    with pytest.raises(SettingError, match="because the price of mine is not known"):
        memory_of(chosen, database_of(chosen))
