"""A client that a program generated from the API's description drives the real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from tests.services.api_server import ApiServer
from tests.services.running import push, running
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(300)]

GENERATOR = "openapi-python-client==0.29.1"

DRIVER = Path(__file__).with_name("drive_generated_client.py")


def _run(*arguments: str, folder: Path) -> str:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def python(api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the generated client in reach."""
    folder = tmp_path_factory.mktemp("client")
    interpreter = folder / "venv/bin/python"
    _run(sys.executable, "-m", "uv", "venv", "--python", sys.executable, str(folder / "venv"), folder=folder)
    install = [sys.executable, "-m", "uv", "pip", "install", "--python", str(interpreter), GENERATOR]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not os.environ.get("CI"):
        pytest.skip(f"the package index does not answer: {done.stderr}")
    assert done.returncode == 0, done.stderr
    (folder / "openapi.json").write_text(httpx.get(f"{api.url}/openapi.json").text)
    generate = (str(interpreter.with_name("openapi-python-client")), "generate", "--path", "openapi.json")
    _run(*generate, "--meta", "none", "--output-path", "context_builder_client", folder=folder)
    described = json.loads((folder / "openapi.json").read_text())["paths"].values()
    names = {operation["operationId"] for operations in described for operation in operations.values()}
    modules = {file.stem for file in (folder / "context_builder_client/api").glob("*/*.py")} - {"__init__"}
    assert names - modules == {"put_policy"}  # whose body is plain text, of which this generator knows nothing
    return interpreter


async def test_it_drives_the_server(api: ApiServer, redis: Redis, python: Path) -> None:
    await push(redis, {"text": "Whales sing.", "speaker": "Ida", "message_number": 1})
    async with running(redis):
        await wait_until(lambda: redis.exists("context_builder:monday:state"), "there is a state")
        done = _run_beside(python, api)
        await wait_until(lambda: done.poll() is not None, "the client is through", timeout=60)
        output = done.stdout.read() if done.stdout else ""
    assert output.splitlines()[-1:] == ["driven"], output


def _run_beside(python: Path, api: ApiServer) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(python), str(DRIVER), api.url, api.key(Role.ADMIN)],
        env={"PYTHONPATH": str(python.parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


async def test_the_description_names_nothing_elsewhere(api: ApiServer) -> None:
    """Page and description come from this server alone, and so do all files that they name."""
    async with api.client() as client:
        page = (await client.get("/docs")).text
        for asset in ("/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css", "/docs/favicon.png"):
            assert asset in page
            assert (await client.get(asset)).status_code == 200
        assert "http://" not in page
        assert "https://" not in page
        described = (await client.get("/openapi.json")).json()
    assert described["openapi"].startswith("3.1")
    assert "servers" not in described
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["security"] == [{"bearer": []}], (method, path)
            assert operation["x-role"] in set(Role)
            assert "application/problem+json" in json.dumps(operation["responses"]["default"])
            for status, answer in operation["responses"].items():
                assert "X-Trace-Id" in answer["headers"], (method, path, status)
                assert status < "400" or list(answer["content"]) == ["application/problem+json"], (method, path)


async def test_the_description_tells_statuses_media_types_and_headers(api: ApiServer) -> None:
    async with api.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    build = paths["/knowledge/context/build"]["post"]["responses"]
    assert set(build) == {"200", "401", "403", "409", "413", "415", "422", "429", "503", "default"}
    opened = paths["/knowledge/context/{package_id}"]["get"]["responses"]
    assert set(opened) >= {"404", "409", "422"}
    assert opened["200"]["content"].keys() == {"application/json", "text/plain"}
    assert opened["200"]["headers"]["X-Context-Cache"]["schema"]["enum"] == ["hit", "rebuilt"]
    assert set(paths["/sessions"]["get"]["responses"]) == {"200", "401", "403", "422", "429", "503", "default"}
    assert "text/plain" in paths["/knowledge/policies/{name}"]["get"]["responses"]["200"]["content"]
    assert paths["/mcp"]["post"]["responses"].keys() >= {"200", "202", "401"}
