"""What helped moves a source's signals: decayed, each caller one voice among at least twenty or forty."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from context_builder.database.database import Database
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Assessment
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.store import KnowledgeStore
from tests.knowledge.record.samples import START, StoppedClock, built, source

pytestmark = pytest.mark.engines

SHOWN = [source("artifact:a"), source("artifact:b")]


class Usefulness(NamedTuple):
    """What the database knows of a source, each from 0 to 1."""

    reuse: float
    quality: float
    helped: float | None


async def usefulness(record: PackageRecord, ref: str) -> Usefulness | None:
    rows = await record._call("context_package_usefulness", "lab", refs=[ref], now=record._now())
    return Usefulness(rows[0]["reuse"], rows[0]["quality"], rows[0]["helped"]) if rows else None


async def known(record: PackageRecord, ref: str = "artifact:a") -> Usefulness:
    found = await usefulness(record, ref)
    assert found is not None
    return found


async def rate(record: PackageRecord, package: int, caller: str, share: float, ref: str = "artifact:a") -> None:
    assert await record.feedback("lab", f"cpk_{package}", caller, share, {ref: share}, "")


async def test_what_helped_counts_for_what_was_shown(either: PackageRecord) -> None:
    await built(either, "cpk_1", START, SHOWN)
    assert await usefulness(either, "artifact:a") is None
    await either.feedback("lab", "cpk_1", "ann", 1.0, {"artifact:a": 0.8, "artifact:never shown": 1.0}, "")
    assert await known(either) == Usefulness(pytest.approx(0.02), pytest.approx(0.515), pytest.approx(0.8))
    assert await known(either, "artifact:b") == Usefulness(0, pytest.approx(0.475), 0)
    assert await usefulness(either, "artifact:never shown") is None
    assert not await either.feedback("lab", "cpk_9", "ann", 1.0, {"artifact:a": 1.0}, "")


async def test_a_caller_s_latest_on_a_package_counts_once(either: PackageRecord, clock: StoppedClock) -> None:
    for number in (1, 2):
        await built(either, f"cpk_{number}", START, SHOWN)
    await rate(either, 1, "ann", 1.0)
    clock.move(days=5)
    for share in (0.3, 0.9, 0.0):
        await rate(either, 2, "ann", share)
    clock.move(days=5)
    for share in (1.0, 0.0, 0.5):
        await rate(either, 1, "ann", share)
    await rate(either, 2, "ann", 0.5)
    assert (await known(either)).helped == pytest.approx(0.5)
    await either.feedback("lab", "cpk_1", "ann", 1.0, {}, "")
    await either.feedback("lab", "cpk_2", "ann", 1.0, {}, "")
    assert (await known(either)).reuse == pytest.approx(0, abs=1e-6)


async def test_it_fades_by_half_in_thirty_days(either: PackageRecord, clock: StoppedClock) -> None:
    await built(either, "cpk_1", START, SHOWN)
    await rate(either, 1, "ann", 1.0)
    clock.move(days=30)
    assert (await known(either)).reuse == pytest.approx(0.0125)
    assert (await known(either)).quality == pytest.approx(0.5125)
    await rate(either, 1, "bob", 1.0)
    assert (await known(either)).reuse == pytest.approx(1.5 / 40)
    clock.move(days=30)
    assert (await known(either)).reuse == pytest.approx(0.75 / 40)


async def test_a_pattern_counts_double(either: PackageRecord, functions: Database) -> None:
    knowledge = KnowledgeStore(functions)
    await knowledge.put("lab", "artifact:b", Artifact(kind=ArtifactKind.PATTERN, title="p", content="c"))
    await built(either, "cpk_1", START, SHOWN)
    await either.feedback("lab", "cpk_1", "ann", 1.0, {"artifact:a": 1.0, "artifact:b": 1.0}, "")
    assert (await known(either)).reuse == pytest.approx(0.025)
    assert (await known(either, "artifact:b")).reuse == pytest.approx(0.05)


@pytest.mark.parametrize("kind", [ArtifactKind.DOCUMENT, ArtifactKind.BLUEPRINT])
@pytest.mark.parametrize("others", [0, 30, 100])
@pytest.mark.parametrize("assessors", [0, 3])
async def test_a_hostile_caller_moves_nothing_by_more_than_a_twentieth(
    record: PackageRecord, clock: StoppedClock, kind: ArtifactKind, others: int, assessors: int
) -> None:
    knowledge = KnowledgeStore(record._database)
    await knowledge.put("lab", "artifact:a", Artifact(kind=kind, title="p", content="c"))
    await knowledge.assess(
        "lab", [Assessment(ref="artifact:a", quality=0.9, assessor=f"assessor {n}") for n in range(assessors)]
    )
    for number in range(60):
        await built(record, f"cpk_{number}", START, SHOWN)
    for number in range(others):
        await rate(record, number % 60, f"caller {number}", 0.4)
    before = (await usefulness(record, "artifact:a")) or Usefulness(0, 0.5, None)
    for share in (1.0, 0.0):
        await asyncio.gather(*(rate(record, number, "mallory", share) for number in range(60)))
        after = await known(record)
        assert abs(after.reuse - before.reuse) <= 0.05 + 1e-9
        assert abs(after.quality - before.quality) <= 0.05 + 1e-9
    if others == 100:
        assert after.helped == pytest.approx(40 / 101)


async def test_a_thousand_packages_of_one_caller_are_one_voice(record: PackageRecord) -> None:
    await asyncio.gather(*(built(record, f"cpk_{number}", START, SHOWN) for number in range(1_000)))
    await asyncio.gather(*(rate(record, number, "mallory", 1.0) for number in range(1_000)))
    after = await known(record)
    assert (after.reuse, after.quality) == (pytest.approx(0.025), pytest.approx(0.525))


async def test_of_many_callers_the_mean_holds(record: PackageRecord) -> None:
    await built(record, "cpk_1", START, SHOWN)
    for number in range(80):
        await rate(record, 1, f"caller {number}", 0.25 if number % 2 else 0.75)
    after = await known(record)
    assert (after.reuse, after.quality, after.helped) == (pytest.approx(0.5),) * 3
