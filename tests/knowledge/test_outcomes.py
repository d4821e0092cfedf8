"""Outcomes tell how packages did, by what they were made of, and how sure that is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from context_builder.knowledge.outcomes import OutcomeGroup, RatedPackage, RatedSource, interval, outcomes_of

AT = datetime(2026, 3, 2, tzinfo=UTC)


def rated(
    name: str, outcome: float | None, *refs: str, tokens: int = 900, policy: str = "sha256:a", note: str = ""
) -> RatedPackage:
    sources = tuple(RatedSource(ref=ref, tokens=10, signals={"graph": outcome or 0.0}) for ref in refs)
    return RatedPackage(
        package_id=name,
        outcome=outcome,
        callers=1,
        note=note,
        at=AT,
        tokens_used=tokens,
        token_budget=1_000,
        policy_version=policy,
        sources=sources,
    )


def named(groups: tuple[OutcomeGroup, ...]) -> dict[str, tuple[int, float]]:
    return {one.name: (one.packages, one.mean) for one in groups}


def test_packages_are_grouped_by_size_policy_source_and_signal() -> None:
    found = outcomes_of(
        [
            rated("a", 1.0, "artifact:good", "artifact:both"),
            rated("b", 0.0, "artifact:bad", "artifact:both", tokens=3_000, policy="sha256:b"),
            rated("c", None, "artifact:good", note="It lacks the schema."),
        ]
    )
    assert found.packages == 2
    assert named(found.by_size) == {"at most 1,000 tokens": (1, 1.0), "at most 4,000 tokens": (1, 0.0)}
    assert named(found.by_policy) == {"sha256:a": (1, 1.0), "sha256:b": (1, 0.0)}
    assert named(found.by_source) == {"artifact:both": (2, 0.5), "artifact:bad": (1, 0.0), "artifact:good": (1, 1.0)}
    assert named(found.by_signal) == {"graph: higher": (1, 1.0), "graph: lower": (1, 0.0)}
    assert [(one.context_package_id, one.note) for one in found.notes] == [("c", "It lacks the schema.")]


def test_policies_are_called_by_whether_they_are_in_force() -> None:
    packages = [rated("a", 1.0), rated("b", 0.0, policy="sha256:0123456789abcdef"), rated("c", 0.5, policy="")]
    titles = {one.name: one.title for one in outcomes_of(packages, "sha256:a").by_policy}
    assert titles == {
        "sha256:a": "the policies in force",
        "sha256:0123456789abcdef": "earlier policies, 0123456789ab",
        "": "no policies",
    }
    assert outcomes_of(packages[:1]).by_policy[0].title == "policies, a"


def test_a_signal_that_tells_no_packages_apart_is_left_out() -> None:
    assert outcomes_of([rated("a", 1.0, "artifact:good")]).by_signal == ()


def test_few_packages_say_little() -> None:
    few, many = interval(0.8, 4), interval(0.8, 400)
    assert few == pytest.approx((0.34, 0.97), abs=0.03)
    assert many[1] - many[0] < 0.1 < few[1] - few[0]
    assert interval(1.0, 1)[0] < 0.3


def test_without_feedback_there_is_nothing_to_tell() -> None:
    found = outcomes_of([])
    assert (found.packages, found.overall, found.by_source) == (0, None, ())
