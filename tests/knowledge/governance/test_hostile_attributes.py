"""Whatever characters refs, subjects and attributes hold, they are names and never policy."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.knowledge.governance import Access, Agent, DecisionContext, GovernedSource, decide
from tests.knowledge.governance.samples import NOW, PERMIT_ALL, WRITER, access, decision, default, only, source

HOSTILE = [
    '"', '\\"', 'a" || true || "', "a\nb", "a\0b", "", " ", "é🐋", "\\u{41}", "::", 'Source::"x"',
    "__entity", "?principal",
    '{"__entity": {"type": "Agent", "id": "a"}}', '{"__extn": {"fn": "ip", "arg": "x"}}', "x" * 100_000, "\u202e", "//",
    "policy0",
]  # fmt: skip
NAMING = PERMIT_ALL + 'forbid (principal, action, resource == Source::"-");'


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("policies", [PERMIT_ALL, NAMING])
def test_refs_subjects_and_attributes_hold_any_character(text, policies):
    one = GovernedSource(text, text, text, "internal", text, text, text, text, frozenset({text}))
    decided = decision(only(policies), one, Agent(text, frozenset({text}), text), intent=text)
    assert (decided.ref, decided.access) == (text, Access.READ)


def test_a_ref_with_nul_is_another_ref():
    policies = only(PERMIT_ALL + 'forbid (principal, action, resource == Source::"a");')
    assert access(policies, source("a")) == Access.DENIED
    assert access(policies, source("a\0")) == Access.READ


@pytest.mark.parametrize("name", [field.name for field in fields(GovernedSource)])
@pytest.mark.parametrize("half", ["\ud800", "whale \udc00"])
def test_a_source_with_half_of_a_surrogate_pair_is_denied_alone(name, half):
    spoilt = source(**{"tags": frozenset({half})} if name == "tags" else {name: half})
    agent = Agent(spoilt.tenant, frozenset(), "") if name == "tenant" else WRITER
    decisions = decide(only(PERMIT_ALL), agent, [spoilt, source("b", tenant=agent.tenant)], DecisionContext("", NOW))
    if name == "tenant":
        assert {one.access for one in decisions} == {Access.DENIED}
    elif name == "sensitivity":  # it is unknown, which is "restricted", so Cedar is not told the text
        assert [one.access for one in decisions] == [Access.READ, Access.READ]
        assert access(default(), spoilt) == Access.DENIED
    else:
        assert [one.access for one in decisions] == [Access.DENIED, Access.READ]
        assert decisions[0].reason == "an attribute has half of a surrogate pair"


@pytest.mark.parametrize(
    "agent",
    [Agent("lab", frozenset({"\ud800"}), "a"), Agent("lab", frozenset(), "\udfff")],
)
def test_an_agent_with_half_of_a_surrogate_pair_is_denied_everything(agent):
    decided = decision(only(PERMIT_ALL), agent=agent)
    assert decided.access == Access.DENIED
    assert decided.reason == "an attribute of the agent has half of a surrogate pair"


def test_half_of_a_surrogate_pair_in_the_intent_becomes_a_question_mark():
    policies = only('permit (principal, action, resource) when { context.intent == "a?b" };')
    assert access(policies, intent="a\ud800b") == Access.READ


@given(
    st.text(st.characters(exclude_categories=())),
    st.text(st.characters(exclude_categories=())),
    st.text(st.characters(exclude_categories=())),
)
def test_no_text_reads_what_the_default_policies_deny(ref, sub, text):
    agent = Agent("lab", frozenset({text}) - {"admin"}, sub)
    asked = source(ref, sensitivity="restricted", project=text, tags=frozenset({text}))
    assert access(default(), asked, agent, intent=text) == Access.DENIED
