"""Texts become a policy set: its version, the ids of its policies, what they read, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.errors import MissingExtra, PolicyError
from context_builder.knowledge.governance import Access, DecisionContext, decide, default_policies, parse_policies
from context_builder.knowledge.governance.policy_set import (
    MAX_BYTES,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_OPERATORS,
    MAX_POLICIES,
    MAX_TEXTS,
    SOURCE_ATTRIBUTES,
)
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

ORDER = [Access.DENIED, Access.REDACTED, Access.READ]


def when(condition: str) -> str:
    return f"permit (principal, action, resource) when {{ {condition} }};"


def refused(text: str, name: str = "ours") -> PolicyError:
    with pytest.raises(PolicyError) as error:
        parse_policies({name: text})
    return error.value


def test_the_version_is_of_names_and_texts_in_any_order():
    version = parse_policies({"a": PERMIT_ALL, "b": ""}).version
    assert version.startswith("sha256:")
    assert len(version) == len("sha256:") + 64
    assert parse_policies({"b": "", "a": PERMIT_ALL}).version == version
    others = ({"a": PERMIT_ALL}, {"b": PERMIT_ALL, "a": ""}, {"a": PERMIT_ALL + " ", "b": ""}, {})
    assert len({version, *(parse_policies(other).version for other in others)}) == 5


def test_a_policys_id_is_its_place_or_its_annotation():
    texts = {
        "b": f'@id("open") {PERMIT_ALL} {PERMIT_ALL}\n@note("x") @id("no.drafts-2") {PERMIT_ALL}// the end',
        "a": f'@id("twice") {PERMIT_ALL} @id("twice") {PERMIT_ALL} @id("1") {PERMIT_ALL} @id("a b") {PERMIT_ALL}',
    }
    assert parse_policies(texts).policy_ids == ("a#1", "a#2", "a#3", "a#4", "b#open", "b#2", "b#no.drafts-2")


def test_a_record_in_a_condition_is_no_annotation():
    assert only(when('{id: "x"}.id == "@id(" || "@id(\\"x\\")" == ""')).policy_ids == ("ours#1",)


def test_ids_are_those_of_the_policies_that_decide_beyond_ten():
    texts = {
        f"p{place:02}": when(f'resource.project == "{place}" && resource.module == "a"')
        + f'@id("b") {when(f"""resource.project == "{place}" && resource.module == "b" """)}'
        for place in range(30)
    }
    policies = parse_policies(texts)
    for place in range(30):
        assert decision(policies, source(project=str(place), module="a")).policies == (f"p{place:02}#1",)
        assert decision(policies, source(project=str(place), module="b")).policies == (f"p{place:02}#b",)


@pytest.mark.parametrize(
    ("condition", "intent", "time"),
    [
        ("true", False, False),
        ('context.intent == "time"', True, False),
        ('context["intent"] == "context.time"', True, False),
        ('principal.sub == "context"', False, False),
        ("true // context.time", False, False),
        ('context.time > datetime("2026-01-01")', False, True),
        ('context // of the request\n . time > datetime("2026-01-01")', False, True),
        ('context["time"] > datetime("2026-01-01")', False, True),
        ("context has time", False, True),
        ("context has intent", True, False),
        ('context["ti\\u{6d}e"] > datetime("2026-01-01")', True, True),
        ("context == context", True, True),
        ('(context).time > datetime("2026-01-01")', True, True),
        ('(if true then context else context).intent == ""', True, True),
        ('[context].contains({intent: "", time: datetime("2026-01-01")})', True, True),
    ],
)
def test_what_of_the_context_a_policy_reads(condition, intent, time):
    text = when(condition).replace(" };", "\n };")
    policies = only(text)
    assert ("intent" in policies.context_read, policies.reads_time) == (intent, time)
    assert "erred" not in decision(policies).reason
    assert parse_policies({"a": PERMIT_ALL, "b": text}).reads_time == time


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (PERMIT_ALL, set()),
        ("permit (principal, action, resource is Source);", set()),
        (when('resource.project == "resource.kind"'), {"project"}),
        (when('resource has session && resource.tags.contains(resource["kind"])'), {"session", "tags", "kind"}),
        (when("principal.roles.contains(resource // of\n .status)"), {"status"}),
        (when('resource["ta\\u{67}s"].contains("a")'), SOURCE_ATTRIBUTES),
        (when('(resource).kind == ""'), SOURCE_ATTRIBUTES),
        (when("[resource].contains(resource)"), SOURCE_ATTRIBUTES),
    ],
)
def test_what_of_a_source_a_policy_reads(text, read):
    text = text.replace(" };", "\n };")
    assert only(text).source_read == read
    assert "erred" not in decision(only(text)).reason
    assert parse_policies({"a": PERMIT_ALL, "b": text}).source_read == read


def test_the_default_policies_do_not_read_the_time():
    assert not default().reads_time


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (PERMIT_ALL, False),
        ("permit (principal, action, resource is Source);", False),
        (when('resource.project == "Source::"'), False),
        ('permit (principal, action, resource == Source::"a");', True),
        ('permit (principal, action, resource in Source :: "a");', True),
        (when('[Source::"a", Source::"b"].contains(resource)'), True),
    ],
)
def test_whether_a_policy_names_sources(text, names):
    assert only(text).names_sources is names


@pytest.mark.parametrize(
    "slot", ["principal == ?principal, action, resource", "principal, action, resource in ?resource"]
)
def test_templates_are_refused(slot):
    error = refused(f"{PERMIT_ALL}\npermit ({slot});")
    assert (error.line, error.message) == (2, "templates are not supported")


def test_an_empty_text_permits_nothing_and_is_no_error():
    assert only("").policy_ids == only("// nothing yet").policy_ids == ()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../x", "é", "x" * 129, "a#1", "a\n", "\ud800"])
def test_names_are_plain(name):
    error = refused(PERMIT_ALL, name)
    assert error.name.isascii()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("//" + "x" * MAX_BYTES, "larger than 65,536 bytes"),
        ("//" + "é" * (MAX_BYTES // 2), "larger than 65,536 bytes"),
        (when("(" * MAX_DEPTH + "true" + ")" * MAX_DEPTH), "brackets"),
        (when("[" * 10_000 + "]" * 10_000 + " == true"), "brackets"),
        (when("!(" * 5_000 + "true" + ")" * 5_000), "brackets"),
        (when("{a: " * 5_000 + "1" + "}" * 5_000 + " == 1"), "brackets"),
        (when(" && ".join(["true"] * (MAX_OPERATORS + 1))), "operators"),
        ("permit (principal, action, resource) " + "when { true } " * (MAX_OPERATORS + 1) + ";", "operators"),
        (when("if true then " * 2_000 + "true" + " else true" * 2_000), "operators"),
        (when("context" + ".time" * 5_000 + " == 1"), "operators"),
        (when("1" + " + 1" * 9_000 + " > 0"), "operators"),
        (when("context" + '["time"]' * 5_000 + " == 1"), "operators"),
    ],
)
def test_what_would_overflow_cedars_stack_is_refused(text, message):
    assert message in refused(text).message


def test_what_is_just_small_enough_is_taken():
    depth = MAX_DEPTH - 1
    assert access(only(when("(" * depth + "true" + ")" * depth))) == Access.READ
    assert access(only(when(" && ".join(["true"] * MAX_OPERATORS)))) == Access.READ
    assert access(only(when("[" + ",".join(["1"] * 9_000) + "].contains(1)"))) == Access.READ


@pytest.mark.engines
def test_the_largest_policies_fit_a_stack_of_one_megabyte():
    depth = MAX_DEPTH - 1
    shapes = [
        "(" * depth + "true" + ")" * depth,
        "{a: " * depth + "1" + "}" * depth + " == 1",
        "(true" + " && true" * 8 + " && (true" * (depth - 1) + ")" * depth,
        "if false then true else " * (MAX_OPERATORS // 3) + "true",
        "true" + " && true" * (MAX_OPERATORS - 1),
        "true } unless { false" * (MAX_OPERATORS - 1),
    ]
    program = f"""
import threading
from contextlib import suppress
from context_builder.errors import PolicyError
from tests.knowledge.governance.samples import access, only
def run():
    for condition in {shapes!r}:
        with suppress(PolicyError):
            access(only("permit (principal, action, resource) when {{ " + condition + " }};"))
    print("survived")
threading.stack_size(1 << 20)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


def test_a_tenant_has_so_many_texts_and_policies():
    with pytest.raises(PolicyError, match="more than 2,000 policy texts"):
        parse_policies({f"p{place}": "" for place in range(MAX_TEXTS + 1)})
    with pytest.raises(PolicyError, match="more than 2,000 policies"):
        parse_policies({"a": PERMIT_ALL * (MAX_POLICIES // 2), "b": PERMIT_ALL * (MAX_POLICIES // 2 + 1)})
    blank = " " * MAX_BYTES
    with pytest.raises(PolicyError, match="more than 6,553,600 characters in all texts"):
        parse_policies({f"p{place}": blank for place in range(MAX_CHARACTERS // MAX_BYTES + 1)})


def test_without_cedar_the_extra_is_told(monkeypatch):
    monkeypatch.setattr("context_builder.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"needs the extra server: pip install 'context-builder\[server\]'"):
        default()


def test_the_default_policies_cannot_be_changed():
    with pytest.raises(TypeError):
        default_policies()["default"] = ""


CONDITIONS = st.sampled_from(
    [
        "true",
        "false",
        OVERFLOW,
        'resource.sensitivity == "confidential"',
        'principal.roles.contains("admin")',
        'context.time > datetime("2026-06-01")',
        'context.intent like "*label*"',
        'resource == Source::"artifact:a"',
        f'resource.kind == "code" && {OVERFLOW}',
    ]
)
ACTIONS = st.sampled_from(["action", 'action == Action::"read"', 'action == Action::"readRedacted"'])


def policy(effect: str) -> st.SearchStrategy[str]:
    return st.builds(
        lambda action, condition: f"{effect} (principal, {action}, resource) when {{ {condition} }};",
        ACTIONS,
        CONDITIONS,
    )


SOURCES = st.lists(
    st.builds(
        source,
        st.sampled_from(["artifact:a", "artifact:b"]),
        sensitivity=st.sampled_from(["public", "internal", "confidential", "restricted", ""]),
        kind=st.sampled_from(["code", "document"]),
    ),
    max_size=4,
)


@given(
    st.lists(st.one_of(policy("permit"), policy("forbid")), max_size=5),
    policy("forbid"),
    st.integers(0, 5),
    SOURCES,
    st.sampled_from([WRITER, ADMIN]),
)
def test_another_forbid_never_gives_more_access(policies, forbid, at, sources, agent):
    context = DecisionContext("Label the clips", NOW)
    before = decide(only("".join(policies)), agent, sources, context)
    after = decide(only("".join((*policies[:at], forbid, *policies[at:]))), agent, sources, context)
    for one, other in zip(before, after, strict=True):
        assert ORDER.index(other.access) <= ORDER.index(one.access)


@given(st.lists(st.one_of(policy("permit"), policy("forbid")), max_size=3), SOURCES)
def test_a_permit_that_errs_everywhere_denies_everything(policies, sources):
    decisions = decide(
        only("".join((*policies, when(OVERFLOW)))), WRITER, sources, DecisionContext("Label the clips", NOW)
    )
    assert [one.access for one in decisions] == [Access.DENIED] * len(sources)


@given(st.lists(st.one_of(policy("permit"), policy("forbid")), max_size=4), SOURCES)
def test_sources_are_decided_together_as_alone_and_named_or_not(policies, sources):
    context = DecisionContext("Label the clips", NOW)
    plain = only("".join(policies))
    naming = with_none_named("".join(policies))
    together = decide(plain, WRITER, sources, context)
    assert together == tuple(decide(plain, WRITER, [one], context)[0] for one in sources)
    assert together == decide(naming, WRITER, sources, context)


def with_none_named(text: str):
    """The same policies, and one that names a source that is never asked for."""
    return only(text + 'forbid (principal, action, resource == Source::"none");')


@given(st.text(st.sampled_from('permit(){}[]principal,action resource when=!<>&|."\\;@?:/1\n'), max_size=80))
def test_any_text_is_taken_or_refused_with_its_place(text):
    told = place_of_error(text)
    if told is not None:
        lines = text.split("\n")
        assert 1 <= told[0] <= len(lines)
        assert 1 <= told[1] <= len(lines[told[0] - 1]) + 1


def place_of_error(text: str) -> tuple[int, int] | None:
    try:
        only(text)
    except PolicyError as error:
        return error.line, error.column
    return None


def test_policies_of_the_start_stay_when_others_are_added():
    assert access(with_default(more="")) == Access.READ
