"""A package is served from the cache, built again when it is not there, and decided anew for whoever asks."""

from __future__ import annotations

import asyncio

import pytest

from context_builder.errors import PackageUnknown
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.revision import RecordedPackage
from context_builder.session.keys import PACKAGE as PREFIX
from tests.knowledge.packages.conftest import ADMIN, ANN, BOB, TRACE, Lab

pytestmark = pytest.mark.engines


async def test_a_cached_package_is_served_as_it_is(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    package = await lab.build("clips")
    assert await lab.service.get(ANN, package.context_package_id) == (package, "hit")
    assert 0 < await lab.redis.ttl(PREFIX + package.context_package_id) <= package.ttl_seconds


async def test_an_expired_package_is_built_again_once_however_many_ask(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    package = await lab.build("clips")
    await lab.redis.delete(PREFIX + package.context_package_id)
    others = [lab.service, lab.again(), lab.again()]
    served = await asyncio.gather(*(others[n % 3].get(ANN, package.context_package_id) for n in range(9)))
    assert {(one.package.revision, one.package.rebuilt) for one in served} == {(2, True)}
    assert {one.package.context_package_id for one in served} == {package.context_package_id}
    audit = await lab.service.audit(ANN, package.context_package_id, of_others=False)
    assert len(audit.revisions) == 2


async def test_one_who_looked_before_another_was_done_builds_nothing_anew(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = await lab.build("clips")
    await lab.redis.delete(PREFIX + package.context_package_id)
    other, latest = lab.again(), lab.record.latest

    async def latest_once_another_is_done(tenant_id: str, package_id: str) -> RecordedPackage | None:
        monkeypatch.setattr(lab.record, "latest", latest)
        assert (await other.get(ANN, package_id)).cache == "rebuilt"
        return await latest(tenant_id, package_id)

    monkeypatch.setattr(lab.record, "latest", latest_once_another_is_done)
    served, cache = await lab.service.get(ANN, package.context_package_id)
    assert (served.revision, served.rebuilt, cache) == (2, True, "hit")
    assert len((await lab.service.audit(ANN, package.context_package_id, of_others=False)).revisions) == 2


async def test_access_is_decided_again_when_policies_change(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    await lab.put("artifact:code", "Code for clips.", kind="code")
    package = await lab.build("clips")
    await lab.policies.put("lab", "code", 'forbid (principal, action, resource) when { resource.kind == "code" };')
    seen, cache = await lab.service.get(ANN, package.context_package_id)
    assert cache == "hit"
    assert [one.ref for one in seen.sources] == ["artifact:clips"]
    assert seen.denied == 0  # of what is denied now, nothing is said
    await lab.policies.delete("lab", "code")
    assert len((await lab.service.get(ANN, package.context_package_id)).package.sources) == 2


async def test_another_caller_sees_what_it_may_and_replaces_nothing(lab: Lab) -> None:
    await lab.put("artifact:pay", "Clips cost a salary.", sensitivity=Sensitivity.RESTRICTED)
    package = await lab.build("clips", ADMIN)
    assert len(package.sources) == 1
    assert (await lab.service.get(BOB, package.context_package_id)).package.sources == ()
    assert len((await lab.service.get(ADMIN, package.context_package_id)).package.sources) == 1


async def test_a_source_that_became_confidential_is_redacted_in_what_was_cached(lab: Lab) -> None:
    await lab.put("artifact:mail", "Clips go to ann@example.org.")
    package = await lab.build("clips")
    await lab.put("artifact:mail", "Clips go to ann@example.org.", sensitivity=Sensitivity.CONFIDENTIAL)
    [source] = (await lab.service.get(ANN, package.context_package_id)).package.sources
    assert (source.projection, source.content) == ("redacted", "Clips go to <EMAIL_ADDRESS>.")


async def test_a_deleted_source_is_gone_from_what_was_cached_and_from_the_record(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips of a peculiar kind.")
    package = await lab.build("clips")
    await lab.store.erase("lab", "artifact:clips")
    assert (await lab.service.get(ANN, package.context_package_id)).package.sources == ()
    assert "peculiar" not in str(await lab.service.audit(ANN, package.context_package_id, of_others=False))


async def test_a_newer_version_is_named_as_stale(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    package = await lab.build("clips")
    await lab.put("artifact:clips", "Hydrophone clips, better.")
    assert (await lab.service.get(ANN, package.context_package_id)).package.stale == ("artifact:clips",)


async def test_the_same_idempotency_key_gives_the_first_package(lab: Lab) -> None:
    await lab.put("artifact:clips", "Hydrophone clips.")
    request = ContextBuildRequest(intent="clips", token_budget=100)
    made = await asyncio.gather(*(lab.again().build(ANN, request, TRACE, idempotency_key="k") for _ in range(4)))
    assert len({one.context_package_id for one in made}) == 1
    assert {one.revision for one in made} == {1}


async def test_an_unknown_package_is_unknown(lab: Lab) -> None:
    with pytest.raises(PackageUnknown):
        await lab.service.get(ANN, "cpk_01J00000000000000000000000")
