"""A view is a package as one caller may see it now, with access decided again by its sources' present state."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.govern import Access, RedactionPolicy
from context_builder.assembly.section import Item
from context_builder.knowledge.artifact import stricter
from context_builder.knowledge.bundle import bundle_tokens, entry_tokens, heading, rendered
from context_builder.knowledge.excerpt import excerpts, parts_of
from context_builder.knowledge.governance import Agent, GovernedSource
from context_builder.knowledge.node import KnowledgeNode, heading_of
from context_builder.knowledge.package import ContextPackage, ContextSource, Projection
from context_builder.knowledge.services import AccessReport

NEVER: Final = ""
"""View of a package that nobody may be served without another decision."""


def view_of(agent: Agent, report: AccessReport | None) -> str:
    """Return the name of what an agent sees by a report's policies; decisions that depend on time have none."""
    if report is None or report.depends_on_time:
        return NEVER
    who = (agent.tenant, agent.sub, sorted(agent.roles), agent.oversees)
    named = json.dumps([*who, report.governance, report.policy_version])
    return "sha256:" + sha256(named.encode()).hexdigest()


def rendered_package(package: ContextPackage) -> str:
    """Return what goes into a model's prompt; empty without sources."""
    return rendered([_item(one) for one in package.sources])


def governed(source: ContextSource, node: KnowledgeNode, tenant_id: str) -> GovernedSource:
    """Return what policies may know of a source of a package: of its node at present, and where the package shows
    another version, whichever sensitivity is the stricter.
    """
    known = node.governed(tenant_id)
    if source.version == node.version:
        return known
    return replace(known, sensitivity=stricter(source.sensitivity, known.sensitivity))


def seen(
    package: ContextPackage,
    nodes: Mapping[str, KnowledgeNode],
    report: AccessReport,
    redaction: RedactionPolicy,
    count: Callable[[str], int],
    denied: int,
    intent: str = "",
) -> ContextPackage:
    """Return the package as the report's agent may see it: without what is denied or gone, redacted where that is so.

    ``denied`` is how many others were denied that the agent may know of. ``stale`` names the sources of which there is
    a newer version. Where a part of a source has to be redacted, the ``intent`` chooses its passages anew.
    """
    known = report.known | report.readable()
    access = {one.ref: one.access for one in report.decisions}
    shown: list[ContextSource] = []
    for source in package.sources:
        allowed = access.get(source.ref, Access.DENIED) if source.ref in nodes else Access.DENIED
        if allowed is Access.REDACTED and not source.projection.is_redacted:
            redacted = _redacted(source, nodes[source.ref], redaction, count, intent)
            if redacted is not None:
                shown.append(redacted)
        elif allowed is not Access.DENIED:
            shown.append(source)
    named = {one.ref for one in shown}
    shown = [one if one.superseded_by is None or one.superseded_by in named else _unnamed(one) for one in shown]
    denied += sum(
        1 for one in report.decisions if one.access is Access.DENIED and one.ref in nodes and one.ref in known
    )
    while shown and bundle_tokens([_item(one) for one in shown], count) > package.token_budget:
        shown.pop()  # redaction can make a text longer
    counted = tuple(_counted(number, one, count) for number, one in enumerate(shown, 1))
    return package.model_copy(
        update={
            "sources": counted,
            "tokens_used": bundle_tokens([_item(one) for one in counted], count),
            "denied": denied,
            "redacted": sum(one.projection.is_redacted and one.ref in known for one in counted),
            "policy_version": report.policy_version,
            "stale": tuple(one.ref for one in counted if 0 < one.version < nodes[one.ref].version),
        }
    )


def _unnamed(source: ContextSource) -> ContextSource:
    """Return the source without the ref of what replaces it, which the caller may not be allowed to know."""
    return _titled(source.model_copy(update={"superseded_by": None}), is_replaced=True)


def _titled(source: ContextSource, *, is_replaced: bool = False) -> ContextSource:
    """Return the source under the heading that its title makes; one that ``is_replaced`` does not say by what."""
    newer = "" if is_replaced else source.superseded_by
    label = heading_of(source.title, source.kind, source.status, newer)
    titled = Item(source.ref, "", candidate=Candidate(source.ref, "", label=label))
    return source.model_copy(update={"heading": heading(titled)})


def _item(source: ContextSource) -> Item:
    return Item(source.ref, source.content, candidate=Candidate(source.ref, source.content, label=source.heading))


def _redacted(
    source: ContextSource, node: KnowledgeNode, redaction: RedactionPolicy, count: Callable[[str], int], intent: str
) -> ContextSource | None:
    """Return the source redacted; None where that is not possible.

    What shows a part of its content is made anew, of the whole one: a part may lack what tells that it is secret.
    """
    is_part = source.projection.is_summarised
    if is_part and (node.content is None or node.version != source.version):
        return None
    given = replace(node, title=source.title, content=node.content if is_part else source.content)
    shown, _, withheld = given.redacted(redaction)
    if withheld or shown.content is None:
        return None
    parts = [shown.content]
    if is_part:
        alike = excerpts(parts_of(shown.content, node.kind, node.ref, intent, floor=1.0), node.title)
        most = count(source.content)
        parts = [text for text in (*alike, *shown.projections) if count(text) <= most]
    if not parts:
        return None
    is_replaced = source.superseded_by is None and "superseded" in source.heading
    projection = Projection.of(redacted=True, summarised=is_part)
    update = {"content": parts[0], "title": shown.title, "projection": projection}
    return _titled(source.model_copy(update=update), is_replaced=is_replaced)


def _counted(number: int, source: ContextSource, count: Callable[[str], int]) -> ContextSource:
    return source.model_copy(update={"tokens": entry_tokens(number, _item(source), count)})
