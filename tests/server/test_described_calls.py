"""Whatever the OpenAPI document lets be sent is answered as the document says, and what it does not is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from context_builder.server.access.caller import Role
from tests.security.test_http import CALLS
from tests.services.api_server import ApiServer
from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

# Some of what fits is refused all the same: refs, texts with NUL, cursors and policies have rules that no schema tells.
WITHOUT_END = 5.0
"""Seconds for a call; only a stream of a session that there is takes longer."""


@pytest.fixture(scope="module")
def own_api(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer, postgres_server: PostgresServer
) -> Iterator[ApiServer]:
    """A server whose database may hold whatever is sent, policies too."""
    folder = tmp_path_factory.mktemp("described")
    server = ApiServer(
        folder, redis_server.url, postgres_server.create_database(migrated=True), serve_caller_rate=10_000
    )
    yield server
    server.close()


@pytest.fixture(scope="module")
def described(own_api: ApiServer) -> Any:
    import schemathesis  # half a second, of no other test

    return schemathesis.openapi.from_url(f"{own_api.url}/openapi.json")


@pytest.mark.parametrize("call", ["POST /mcp", *(f"{one.method} {one.path.replace(':path', '')}" for one in CALLS)])
def test_each_call_is_answered_as_it_is_described(own_api: ApiServer, described: Any, call: str) -> None:
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    method, path = call.split(" ")
    headers = {"Authorization": f"Bearer {own_api.key(Role.ADMIN)}"}

    @given(case=described[path][method].as_strategy())
    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def answered(case: Any) -> None:
        case.call_and_validate(
            base_url=own_api.url, headers=headers, timeout=WITHOUT_END, excluded_checks=[positive_data_acceptance]
        )

    answered()


def test_every_call_is_described(described: Any) -> None:
    there = {f"{one.ok().method.upper()} {one.ok().path}" for one in described.get_all_operations()}
    assert there == {"POST /mcp", *(f"{one.method} {one.path.replace(':path', '')}" for one in CALLS)}
