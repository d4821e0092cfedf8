"""The real server, over HTTP and gRPC, as a process of its own, with keys for whoever a test wants to be."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from context_builder.database.postgres import PostgresDatabase
from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.server.access.api_keys import ApiKeys, NewKey
from context_builder.server.access.caller import Role
from context_builder.storage.bounded_http import trusted_authorities
from tests.services.daemon import ROOT, Daemon
from tests.services.in_thread import in_thread
from tests.services.jwt_issuer import AUDIENCE, ISSUER, JwtIssuer
from tests.services.waiting import PATIENCE

if TYPE_CHECKING:
    from mcp.client.stdio import StdioServerParameters

TENANT = "lab"
"""Has the sessions."""


class ApiServer:
    """``context-builder serve`` on a free loopback port, on a migrated database; ready once it is made."""

    def __init__(self, folder: Path, redis_url: str, database_url: str, **changed: Any) -> None:
        self.folder = folder
        self.database_url = database_url
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        grpc_port = free_port()
        self.grpc_url = f"grpc://{LOOPBACK}:{grpc_port}"
        self.issuer = JwtIssuer()
        self.recordings = folder / "recordings"
        self.settings: dict[str, Any] = {
            "redis_url": redis_url,
            "database_url": database_url,
            "tenant_id": TENANT,
            "record_dir": folder / "recordings",
            "retrieval_time": 5,  # what is tested is what is answered, on a machine that may be busy
            "context_deadline": 8,
            "auth_jwks_file": self.issuer.write(folder / "jwks.json"),
            "auth_audience": AUDIENCE,
            "auth_issuer": ISSUER,
            **changed,
        }
        ports = ("--port", str(self.port), "--grpc", str(grpc_port))
        self.daemon = Daemon(folder, "serve", *ports, **self.settings)
        deadline = time.monotonic() + 100
        while not self._answers():
            assert self.daemon.process.poll() is None, self.daemon.output
            assert time.monotonic() < deadline, self.daemon.output
            time.sleep(0.02)
        self._keys: dict[tuple[str, Role], str] = {}

    @property
    def local_token(self) -> str:
        return (self.folder / "home/serve.token").read_text().strip()

    def key(self, role: Role = Role.WRITER, tenant: str = TENANT) -> str:
        """An API key of a tenant, one for each role."""
        if (tenant, role) not in self._keys:
            self._keys[tenant, role] = self.new_key(role, tenant).secret
        return self._keys[tenant, role]

    def new_key(self, role: Role = Role.WRITER, tenant: str = TENANT) -> NewKey:
        async def create(keys: ApiKeys) -> NewKey:
            return await keys.create(tenant, role, "for a test")

        return self.with_keys(create)

    def with_keys(self, use: Any) -> Any:
        """What ``use`` returns, which is given the keys in the database."""

        async def used() -> Any:
            database = PostgresDatabase(self.database_url)
            try:
                return await use(ApiKeys(database, TENANT))
            finally:
                await database.close()

        return in_thread(used())

    def over_a_pipe(self, folder: Path) -> StdioServerParameters:
        """How a client of the Model Context Protocol starts ``context-builder mcp`` on the same services."""
        from mcp.client.stdio import StdioServerParameters  # half a second, which every run would take

        environ = {name.upper(): str(value) for name, value in self.settings.items()}
        environ |= {"PYTHONPATH": str(ROOT), "CONTEXT_BUILDER_HOME": str(folder / "home")}
        environ |= {"EMBEDDED_EMBEDDINGS": "false"}
        return StdioServerParameters(command=sys.executable, args=["-m", "context_builder", "mcp"], env=environ)

    def client(self, credential: str | None = None, **options: Any) -> httpx.AsyncClient:
        shown = {"Authorization": f"Bearer {credential}"} if credential is not None else {}
        headers = shown | options.pop("headers", {})
        return httpx.AsyncClient(
            **{
                "base_url": self.url,
                "headers": headers,
                "timeout": PATIENCE,
                "verify": trusted_authorities(),
                **options,
            }
        )

    def close(self) -> None:
        self.daemon.kill()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/livez", verify=trusted_authorities()).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False
