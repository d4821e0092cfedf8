"""What an agent may see of a source, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.governance import Access, Agent, DecisionContext, decide
from context_builder.knowledge.governance.cedar import read_policies
from tests.knowledge.governance.samples import (
    ADMIN,
    NOW,
    OVERFLOW,
    PERMIT_ALL,
    WRITER,
    access,
    decision,
    default,
    only,
    source,
    with_default,
)

READ, REDACTED, DENIED = Access.READ, Access.REDACTED, Access.DENIED


@pytest.mark.parametrize(
    ("sensitivity", "writer", "admin"),
    [
        ("public", READ, READ),
        ("internal", READ, READ),
        ("confidential", REDACTED, REDACTED),
        ("restricted", DENIED, READ),
        (Sensitivity.CONFIDENTIAL, REDACTED, REDACTED),
        ("", DENIED, READ),
        ("Public", DENIED, READ),
        ("secret", DENIED, READ),
    ],
)
def test_the_policies_of_the_start(sensitivity, writer, admin):
    assert access(default(), source(sensitivity=sensitivity), WRITER) == writer
    assert access(default(), source(sensitivity=sensitivity), ADMIN) == admin


def test_a_confidential_source_is_redacted_where_read_alone_is_permitted():
    policies = only('permit (principal, action == Action::"read", resource);')
    decided = decision(policies, source(sensitivity="confidential"))
    assert (decided.access, decided.policies) == (REDACTED, ("ours#1",))
    assert decided.reason == "policy ours#1 permits read, and confidential sources are redacted"


def test_where_read_is_forbidden_what_may_be_read_redacted_is_redacted():
    policies = only(PERMIT_ALL + '@id("no-drafts") forbid (principal, action == Action::"read", resource);')
    decided = decision(policies)
    assert (decided.access, decided.policies) == (REDACTED, ("ours#1",))
    assert decided.reason == "policy ours#no-drafts forbids read; policy ours#1 permits readRedacted"


def test_without_policies_nothing_is_permitted():
    decided = decision(only(""))
    assert (decided.access, decided.policies, decided.reason) == (DENIED, (), "no policy permits")


def test_a_denial_names_the_policies_that_forbid():
    policies = with_default(project='forbid (principal, action, resource) when { resource.project == "kelp" };')
    decided = decision(policies, source(project="kelp"))
    assert (decided.access, decided.policies) == (DENIED, ("project#1",))
    assert decided.reason == "policy project#1 forbids read; policy project#1 forbids readRedacted"


def test_every_policy_that_permits_is_named():
    decided = decision(with_default(more=PERMIT_ALL * 2))
    assert decided.policies == ("default#open", "more#1", "more#2")
    assert decided.reason == "policies default#open, more#1, more#2 permit read"


@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_a_policy_that_errs_denies_though_others_permit(effect):
    policies = only(f"{PERMIT_ALL} {effect} (principal, action, resource) when {{ {OVERFLOW} }};")
    decided = decision(policies)
    assert (decided.access, decided.policies) == (DENIED, ("ours#2",))
    assert decided.reason == "policy ours#2 erred: integer overflow"


def test_an_error_denies_the_sources_at_which_it_occurs_alone():
    policies = only(
        f'{PERMIT_ALL} forbid (principal, action, resource) when {{ resource.kind == "code" && {OVERFLOW} }};'
    )
    assert access(policies, source(kind="code")) == DENIED
    assert access(policies, source(kind="document")) == READ


@pytest.mark.parametrize(
    "condition", ["resource.colour == 1", "resource.tags < 1", "decimal(context.intent) > 0", "context.place == 1"]
)
def test_errors_that_the_schema_would_have_kept_out_deny_and_quote_nothing(condition):
    read = frozenset({"intent", "time"})
    lax = read_policies(f"{PERMIT_ALL} forbid (principal, action, resource) when {{ {condition} }};")
    policies = replace(only(PERMIT_ALL * 2), cedar=lax, context_read=read)
    decided = decision(policies, intent="the password is swordfish")
    assert decided.access == DENIED
    assert decided.reason.startswith("policy ours#2 erred: ")
    assert "swordfish" not in decided.reason


def test_a_context_that_cedar_is_not_told_denies_what_reads_it():
    lax = read_policies(PERMIT_ALL + 'forbid (principal, action, resource) when { context.intent like "*salary*" };')
    assert access(replace(only(PERMIT_ALL * 2), cedar=lax, context_read=frozenset())) == DENIED


def test_no_decision_denies(monkeypatch):
    monkeypatch.setattr(DecisionContext, "attributes", lambda *_: '{"time": ')
    decided = decision(only(PERMIT_ALL))
    assert (decided.access, decided.reason) == (DENIED, "Cedar made no decision")


class Panic(BaseException):
    """As PyO3's, which is no Exception."""


Panic.__name__ = "PanicException"


@pytest.mark.parametrize("error", [ValueError, MemoryError, Panic])
def test_if_cedar_fails_everything_is_denied_and_told(error, monkeypatch):
    def fail(*_):
        raise error("what the agent wanted to know")

    policies = default()
    monkeypatch.setattr("cedarpy.is_authorized_batch", fail)
    decisions = decide(policies, ADMIN, [source("a"), source("b")], DecisionContext("", NOW))
    assert [(one.ref, one.access) for one in decisions] == [("a", DENIED), ("b", DENIED)]
    assert {one.reason for one in decisions} == {f"Cedar failed with {error.__name__}"}


def test_too_few_answers_deny_everything(monkeypatch):
    policies = default()
    monkeypatch.setattr("cedarpy.is_authorized_batch", lambda *_: [])
    assert access(policies) == DENIED


def test_ctrl_c_is_no_failure_of_cedar(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    policies = default()
    monkeypatch.setattr("cedarpy.is_authorized_batch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        decision(policies)


def test_another_tenants_source_is_denied_whatever_the_policies_say():
    policies = only(PERMIT_ALL)
    for tenant in ("other", "", "Lab"):
        assert access(policies, source(tenant=tenant)) == DENIED
    assert access(policies, source(tenant=""), replace(WRITER, tenant="")) == READ


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("kind", "code"),
        ("sensitivity", "public"),
        ("status", "approved"),
        ("project", "kelp"),
        ("module", "acoustics"),
        ("session", "monday"),
        ("tenant", "lab"),
    ],
)
def test_policies_read_each_attribute_of_a_source(attribute, value):
    policies = only(f'permit (principal, action, resource) when {{ resource.{attribute} == "{value}" }};')
    assert access(policies, source(**{attribute: value})) == READ
    empty = only(f'permit (principal, action, resource) when {{ resource.{attribute} == "" }};')
    if attribute not in ("tenant", "sensitivity"):
        assert access(empty) == READ


def test_policies_read_tags_and_the_agents_attributes():
    policies = only(
        'permit (principal, action, resource) when { resource.tags.contains("labels") && principal.sub == "agent-7" '
        '&& principal.tenant == resource.tenant && principal.roles.containsAny(["writer"]) };'
    )
    assert access(policies, source(tags=frozenset({"labels", "clips"}))) == READ
    assert access(policies, source()) == DENIED
    assert access(policies, source(tags=frozenset({"labels"})), ADMIN) == DENIED


def test_policies_name_sources_and_agents():
    policies = with_default(
        names='forbid (principal == Agent::"agent-7", action, resource == Source::"artifact:protocol");'
    )
    assert access(policies) == DENIED
    assert access(policies, source("artifact:other")) == READ
    assert access(policies, agent=ADMIN) == READ


def test_the_same_ref_with_other_attributes_is_decided_apart():
    policies = with_default(names='forbid (principal, action, resource == Source::"other");')
    asked = [source("x"), source("x", sensitivity="confidential"), source("x", sensitivity="restricted"), source("x")]
    decisions = decide(policies, WRITER, asked, DecisionContext("", NOW))
    assert [one.access for one in decisions] == [READ, REDACTED, DENIED, READ]


def test_the_intent_may_decide():
    policies = with_default(hr='forbid (principal, action, resource) when { context.intent like "*salary*" };')
    assert access(policies, intent="the salary of Alice") == DENIED
    assert access(policies, intent="the labels") == READ


def test_time_decides_to_the_millisecond_in_any_offset():
    policies = only(
        "permit (principal, action, resource)"
        ' when { context.time >= datetime("2026-11-22T10:30:45.123Z") && context.time < datetime("2026-11-23") };'
    )
    assert access(policies) == READ
    assert access(policies, time=NOW.astimezone(timezone(timedelta(hours=5)))) == READ
    assert access(policies, time=NOW - timedelta(milliseconds=1)) == DENIED
    assert access(policies, time=NOW + timedelta(days=1)) == DENIED
    assert access(policies, time=datetime.min.replace(tzinfo=UTC)) == DENIED
    assert access(policies, time=datetime.max.replace(tzinfo=UTC)) == DENIED


def test_a_thousand_sources_are_decided_in_their_order():
    sensitivities = ["public", "confidential", "restricted"]
    expected = [READ, REDACTED, DENIED]
    for policies in (default(), with_default(names='forbid (principal, action, resource == Source::"none");')):
        asked = [
            source(f"artifact:{place}", sensitivity=sensitivities[place % 3], session=f"session-{place % 50}")
            for place in range(1_000)
        ]
        decisions = decide(policies, WRITER, asked, DecisionContext("", NOW))
        assert [one.ref for one in decisions] == [one.ref for one in asked]
        assert [one.access for one in decisions] == [expected[place % 3] for place in range(1_000)]


@given(st.data())
def test_sources_are_decided_together_as_they_are_alone(data):
    conditions = [
        'resource.sensitivity == "public"',
        'resource.project == "kelp"',
        "resource has session",
        'resource["kind"] == "document" && resource.tags.contains("open")',
        "resource == resource",
        'resource == Source::"one"',
    ]
    chosen = data.draw(st.lists(st.sampled_from(conditions), max_size=3, unique=True))
    verb = st.sampled_from(["permit", "forbid"])
    action = st.sampled_from(['== Action::"read"', '== Action::"readRedacted"', ""])
    texts = [f"{data.draw(verb)} (principal, action {data.draw(action)}, resource) when {{ {one} }};" for one in chosen]
    policies = with_default(ours=" ".join(texts)) if data.draw(st.booleans()) else only(PERMIT_ALL + " ".join(texts))
    some = st.builds(
        source,
        ref=st.sampled_from(["one", "two"]),
        kind=st.sampled_from(["document", "claim"]),
        sensitivity=st.sampled_from(["public", "internal", "confidential", "restricted", "odd"]),
        project=st.sampled_from(["kelp", "reef"]),
        tags=st.sampled_from([frozenset(), frozenset({"open"})]),
    )
    sources = data.draw(st.lists(some, max_size=12))
    together = decide(policies, WRITER, sources, DecisionContext("", NOW))
    assert together == tuple(
        one for each in sources for one in decide(policies, WRITER, [each], DecisionContext("", NOW))
    )


def test_no_sources_have_no_decisions():
    assert decide(default(), WRITER, [], DecisionContext("", NOW)) == ()
    assert decide(default(), Agent("lab", frozenset({"\ud800"}), ""), [], DecisionContext("", NOW)) == ()
