"""A package's JSON is made once, and is that of the package as it is."""

from __future__ import annotations

from context_builder.knowledge.package import ContextPackage, Coverage

PACKAGE = ContextPackage(
    context_package_id="cpk_1",
    context_build_request_id="cbr_1",
    revision=1,
    task_id="",
    trace_id="",
    tenant_id="lab",
    graph_projection_id="gpr_1",
    policy_decision_id="pdn_1",
    policy_version="",
    created_at="2026-11-22T10:30:45.123456+00:00",
    expires_at="2026-11-22T11:00:45.123456+00:00",
    ttl_seconds=1800,
    token_budget=100,
    tokens_used=0,
    token_encoding="o200k_base",
    sources=(),
    coverage=Coverage(graph="ok", semantic="ok", metadata="ok", cache="ok", reduced=False),
    denied=0,
    redacted=0,
    excluded=0,
)


def test_a_package_s_json_is_read_as_the_same_package() -> None:
    assert ContextPackage.model_validate_json(PACKAGE.json_text) == PACKAGE
    assert PACKAGE.json_text is PACKAGE.json_text


def test_a_copy_has_json_of_its_own() -> None:
    assert '"revision":1' in PACKAGE.json_text
    assert '"revision":2' in PACKAGE.model_copy(update={"revision": 2}).json_text
