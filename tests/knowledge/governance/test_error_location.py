"""An error in a policy text is told with the line and column of its policy, or of what is no token at all."""

from __future__ import annotations

import pytest

from context_builder.errors import ContextBuilderError, PolicyError
from context_builder.knowledge.governance import parse_policies

GOOD = '// what everybody may read\npermit (principal, action, resource) when { resource.project == "a;b }" };\n'

AT = "▶"
"""Stands before the place that the error must name, and is taken out."""

CASES = [
    ("▶permit (principal, action, resource)", "unexpected end of input"),
    ("▶permit (principal, action, resource) wen { true };", "invalid policy condition: wen"),
    ("▶allow (principal, action, resource);", "invalid policy effect: allow"),
    ("▶permit (principal, action resource);", "unexpected token `resource`"),
    ("▶permit (resource, action, principal);", "found the variable `resource`"),
    ("▶permit (principal, action == read, resource);", "expected an entity uid"),
    ('permit (principal, action, resource) when { resource.project == ▶"x };', "a string that does not end"),
    ('▶permit (principal, action, resource) when { resource.project = "x" };', "'=' is not a valid operator"),
    ("▶permit (principal, action, resource) when { true && 9223372036854775808 > 1 };", "is too large"),
    (
        '▶permit (principal, action, resource) when { resource.foo == "foo" || foo(1) };',
        "`foo` is not a valid function",
    ),
    ('▶permit (principal, action, resource) when { "bar" == "" && "a".bar() };', "`bar` is not a valid method"),
    ('▶permit (principal, action, resource) when { principal.sub == ""\n  && sub == 1 };', "invalid variable: sub"),
    ('▶@id("a") @id("b") permit (principal, action, resource);', "duplicate annotation"),
    ('▶permit (principal, action, resource) when { "a\\q" == "" };', "is not a valid escape"),
    ("▶permit (principal, action, resource) when { 1 + };", "unexpected token `}`"),
    ("▶permit (principal, action, resource) when { if true then 1 };", "unexpected token `}`"),
    ("▶permit (principal, action, resource) when { {a:1, a:2} == 1 };", "duplicate key `a`"),
    ("▶permit (principal, action, resource) when { principal.sub like foo };", "must be a pattern literal"),
    ("permit (principal, action, resource); ▶}", "unexpected token `}`"),
    ("▶permit (principal, action, resource) when { true }\npermit (principal, action, resource);", "unexpected token"),
    ("permit (principal, action, resource) when { ▶'a' == 1 };", 'invalid character "\'"'),
    ("permit (principal, action, resource) when { ▶é };", "invalid character '\\xe9'"),
    ("permit (principal, action, resource) when { ▶\0 };", "invalid character '\\x00'"),
    ('permit (principal, action, resource) when { "é▶\ud83d" == "" };', "half of a surrogate pair"),
    ("▶permit (principal, action, resource) when { resource.project == principal.project };", "attribute `project`"),
    ("▶permit (principal, action, resource) when { true } unless { resource.colour == 1 };", "attribute `colour`"),
    ("▶permit (principal, action, resource) when { context.place == 1 };", "attribute `place` in context"),
    ('▶permit (principal, action == Action::"write", resource);', 'unrecognized action `Action::"write"`'),
    ("▶permit (principal is User, action, resource);", "unrecognized entity type `User`"),
    ('▶permit (principal in Role::"a", action, resource);', "unrecognized entity type `Role`"),
    ("▶permit (principal, action, resource) when { true && resource.project == 1 };", "are not compatible"),
    ('▶permit (principal, action, resource) when { true }\nwhen { 1 < "a" && true };', "expected Long but saw String"),
    ('▶permit (principal, action, resource) when { true && "s" };', "expected Bool but saw String"),
    ('▶permit (principal, action, resource) when { ip("300.1.1.1").isIpv4() };', "failed to parse as IP address"),
    ('▶permit (principal, action, resource) when { decimal(context.intent) == decimal("1.0") };', "non-literal"),
]


@pytest.mark.parametrize(("marked", "message"), CASES, ids=[message for _, message in CASES])
@pytest.mark.parametrize("before", ["", GOOD, GOOD * 12])
@pytest.mark.parametrize("after", ["", "\n" + GOOD])
def test_an_error_is_told_with_its_line_and_column(marked, message, before, after):
    if not marked.rstrip().endswith((";", "}")) or '"x };' in marked:
        after = ""  # what follows would belong to it
    whole = before + marked + after
    at = whole.index(AT)
    text = whole.replace(AT, "")
    with pytest.raises(PolicyError) as error:
        parse_policies({"default": "", "ours": text})
    told = error.value
    assert (told.name, told.line, told.column) == ("ours", whole.count("\n", 0, at) + 1, at - whole.rfind("\n", 0, at))
    assert message in told.message
    assert str(told) == f"ours, line {told.line}, column {told.column}: {told.message}"
    assert isinstance(told, ContextBuilderError)


def test_the_first_of_several_errors_is_told():
    text = f"{GOOD}permit (principal, action, resource) when {{ true && foo(1) && bar(2) }};\nallow ();"
    with pytest.raises(PolicyError) as error:
        parse_policies({"ours": text})
    assert (error.value.line, error.value.column) == (3, 1)


def test_a_long_message_is_cut():
    record = ", ".join(f"a{place}: 1" for place in range(1_000))
    with pytest.raises(PolicyError) as error:
        parse_policies({"ours": f"permit (principal, action, resource) when {{ {{{record}}} == {{}} }};"})
    assert len(error.value.message) == 301
