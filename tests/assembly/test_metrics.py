"""Names, labels and buckets that dashboards rely on."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from context_builder.assembly import AssemblyRules, ContextBuilderMetrics, tracing
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


async def test_looking_into_a_context_or_getting_it_again_is_no_building(builder, registry):
    rules = AssemblyRules(cache_seconds=10)
    build = builder(somabrain=Brain(memories(2)), metrics=ContextBuilderMetrics(registry), rules=rules).build_for_turn
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


@pytest.mark.parametrize(
    ("name", "labels", "buckets"),
    [
        ("thinking_total_seconds", {}, 11),
        ("thinking_retrieval_seconds", {"state": "down"}, 10),
        ("thinking_prompt_seconds", {}, 9),
        ("context_builder_retrieval_seconds", {}, 7),
        ("context_builder_snippet_count", {}, 9),
        ("context_builder_token_utilization", {}, 8),
    ],
)
def test_the_buckets_are_the_documented_ones(registry, name, labels, buckets):
    metrics = ContextBuilderMetrics(registry)
    with metrics.time_retrieval("down"):
        pass
    (metric,) = [one for one in registry.collect() if one.name == name]
    assert len([sample for sample in metric.samples if sample.name.endswith("_bucket")]) == buckets


def test_any_number_of_builders_share_the_metrics():
    assert ContextBuilderMetrics()._of is ContextBuilderMetrics()._of


async def test_each_phase_is_a_span(builder, monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("test"))
    await builder(somabrain=Brain(memories(1))).build_for_turn(TURN)
    names = [span.name.removeprefix("context.") for span in exporter.get_finished_spans()]
    assert names == ["retrieval", "salience", "ranking", "redaction", "tokenisation", "prompt", "total"]
