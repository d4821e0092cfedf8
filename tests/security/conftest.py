"""The server of tests that send more, or store worse, than the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.api_server import ApiServer
from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer


@pytest.fixture(scope="module")
def own_api(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer, postgres_server: PostgresServer
) -> Iterator[ApiServer]:
    """A server of the file's own, whose callers may call as often as they like."""
    folder, database = tmp_path_factory.mktemp("api"), postgres_server.create_database(migrated=True)
    many = dict.fromkeys(("serve_caller_rate", "serve_tenant_rate"), 10_000)
    server = ApiServer(folder, redis_server.url, database, **many)
    yield server
    server.close()
