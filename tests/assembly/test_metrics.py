"""Names, labels and buckets that dashboards rely on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from context_builder.assembly import AssemblyConfig, ContextBuilderMetrics
from tests.assembly.turns import Brain, memories

TURN = {"user_message": "what is it", "history": [{"role": "user", "content": "word"}] * 50}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


async def test_a_turn_is_told_of_in_every_metric(builder, registry):
    brain = Brain(memories(2))
    made = builder(somabrain=brain, metrics=ContextBuilderMetrics(registry))
    context = await made.build_for_turn(TURN, max_prompt_tokens=100)
    await made.drain()
    phases = ("total", "salience", "ranking", "redaction", "tokenisation", "prompt")
    assert [registry.get_sample_value(f"thinking_{name}_seconds_count") for name in phases] == [1.0] * 6
    assert registry.get_sample_value("thinking_retrieval_seconds_count", {"state": "normal"}) == 1.0
    assert registry.get_sample_value("context_prompt_tokens") == context.token_counts["total"]
    assert registry.get_sample_value("context_tokens_before_budget") > context.token_counts["total"]
    assert registry.get_sample_value("context_builder_prompt_total") == 1.0
    assert registry.get_sample_value("context_builder_snippets_total", {"stage": "final"}) == 2.0
    assert registry.get_sample_value("context_builder_snippets_total", {"stage": "summary"}) == 1.0
    assert registry.get_sample_value("context_builder_snippet_count_bucket", {"le": "3.0"}) == 1.0
    assert registry.get_sample_value("context_builder_token_utilization_count") == 1.0


class Shortening:
    def redact(self, text: str) -> str:
        return text.replace("my secret word", "§§secret(KEY)")


async def test_tokens_are_told_before_redaction_and_before_the_budget_as_they_are(builder, registry):
    history = [{"role": "user", "content": f"{place} my secret word"} for place in range(30)]
    made = builder(metrics=ContextBuilderMetrics(registry), redactor=Shortening())
    context = await made.build_for_turn(TURN | {"history": history}, max_prompt_tokens=100)
    await made.drain()
    told = {
        name: registry.get_sample_value(f"context_{name}")
        for name in ("tokens_before_budget", "tokens_after_redaction", "tokens_after_budget", "prompt_tokens")
    }
    looked_at = len(context.history) + 1  # the first that does not fit, too
    given = 3 + 4 + (4 + 3) + 30 * (4 + 4)
    assert told == {
        "tokens_before_budget": given,
        "tokens_after_redaction": given - 2 * looked_at,
        "tokens_after_budget": context.token_counts["total"],
        "prompt_tokens": context.token_counts["total"],
    }


async def test_without_a_budget_to_speak_of_the_tokens_differ_by_what_was_masked(builder, registry):
    history = [{"role": "user", "content": "my secret word"}] * 3
    made = builder(metrics=ContextBuilderMetrics(registry), redactor=Shortening())
    total = (await made.build_for_turn(TURN | {"history": history})).token_counts["total"]
    names = ("tokens_before_budget", "tokens_after_redaction", "tokens_after_budget")
    assert [registry.get_sample_value(f"context_{name}") for name in names] == [total + 3 * 2, total, total]


async def test_looking_into_a_context_or_getting_it_again_is_no_building(builder, registry):
    rules = AssemblyConfig(cache_seconds=10)
    build = builder(somabrain=Brain(memories(2)), metrics=ContextBuilderMetrics(registry), config=rules).build_for_turn
    context = await build(TURN, max_prompt_tokens=100)
    assert context.added_by(500)
    assert (await build(TURN, max_prompt_tokens=100)).debug["cached"]
    phases = ("total", "salience", "ranking", "redaction", "tokenisation", "prompt")
    assert [registry.get_sample_value(f"thinking_{name}_seconds_count") for name in phases] == [1.0] * 6
    assert registry.get_sample_value("context_builder_prompt_total") == 1.0


async def test_failures_are_counted_by_reason(builder, registry):
    brain = Brain()
    brain.failure = TimeoutError()
    await builder(somabrain=brain, metrics=ContextBuilderMetrics(registry)).build_for_turn(TURN)
    assert registry.get_sample_value("context_builder_degradation_total", {"reason": "timeout"}) == 1.0


PHASE = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0]


@pytest.mark.parametrize(
    ("name", "buckets"),
    [
        ("thinking_total_seconds", [*PHASE, 2.0, 5.0]),
        ("thinking_retrieval_seconds", [*PHASE, 2.0]),
        ("thinking_salience_seconds", PHASE),
        ("thinking_ranking_seconds", PHASE),
        ("thinking_redaction_seconds", PHASE),
        ("thinking_tokenisation_seconds", PHASE),
        ("thinking_prompt_seconds", PHASE),
        ("context_builder_retrieval_seconds", [0.01, 0.05, 0.1, 0.2, 0.5, 1.0]),
        ("context_builder_snippet_count", [0, 1, 3, 5, 8, 10, 15, 20]),
        ("context_builder_token_utilization", [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]),
    ],
)
def test_the_buckets_are_the_documented_ones(registry, name, buckets):
    metrics = ContextBuilderMetrics(registry)
    with metrics.time_retrieval("down"):
        pass
    (metric,) = [one for one in registry.collect() if one.name == name]
    bounds = [float(sample.labels["le"]) for sample in metric.samples if sample.name.endswith("_bucket")]
    assert bounds == [*buckets, float("inf")]


def test_any_number_of_builders_share_the_metrics():
    assert ContextBuilderMetrics()._of is ContextBuilderMetrics()._of


@pytest.fixture(scope="module")
def spans() -> Iterator[InMemorySpanExporter]:
    """What the OpenTelemetry SDK exports meanwhile; a program sets it up once, other tests are to do without it."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        yield exporter
    provider.shutdown()


async def test_each_phase_is_a_span_within_that_of_the_turn(builder, spans):
    made = builder(somabrain=Brain(memories(1)))
    spans.clear()
    await made.build_for_turn(TURN, max_prompt_tokens=100)
    await made.drain()
    told = {
        one.name.removeprefix("context."): one for one in spans.get_finished_spans() if one.name.startswith("context.")
    }
    phases = ["health", "retrieval", "salience", "ranking", "redaction", "tokenisation", "prompt", "recording"]
    assert list(told) == [*phases, "total", "summary"]
    assert all(told[name].parent.span_id == told["total"].context.span_id for name in [*phases, "summary"])
