"""Each example runs with the extras that its header names, and nothing else that is installed here."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from redis import Redis

from tests.services.daemon import ROOT
from tests.services.redis_server import RedisServer

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.long]

EXAMPLES = ROOT / "docs/examples"
BLOCKING = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
"""A ``sitecustomize``, so that it holds for what the example starts, too."""

RUNS = {
    "openai_agents": """
from agents import set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message
set_tracing_disabled(True)
model = ScriptedModel([{"output": [assistant_message("By hand.")]}])
print(asyncio.run(example.answer("How are clips labelled?", model)))
""",
    "langgraph_agent": 'print(asyncio.run(example.answer("How are clips labelled?")))',
    "livekit_agent": "print(example.server)",
    "mcp_client": 'print(asyncio.run(example.summary("never")))',
}
TOLD = {
    "openai_agents": "By hand.",
    "langgraph_agent": "messages: 1, memories: 0",
    "livekit_agent": "AgentServer",
    "mcp_client": "there is no session never",
}


def extras_of(example: str) -> set[str]:
    """The extras that the header names."""
    (extras,) = re.findall(r"pip install '\.\[([a-z,-]+)\]'", (EXAMPLES / f"{example}.py").read_text("utf-8"))
    return set(extras.split(","))


def installed_by(extras: set[str]) -> set[str]:
    """The distributions that ``pip install '.[…]'`` brings, as far as they are here."""
    found: dict[str, set[str]] = {}
    waiting = [("context-builder", frozenset(extras))]
    while waiting:
        name, wanted = waiting.pop()
        if wanted <= (known := found.setdefault(name, set())) and known:
            continue
        known |= {"", *wanted}
        waiting += _required(name, wanted)
    return set(found)


def _required(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    try:
        listed = requires(name) or ()
    except PackageNotFoundError:
        return
    for one in map(Requirement, listed):
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(one.name), frozenset({"", *one.extras})


def absent(extras: set[str]) -> set[str]:
    """The packages that would not be there."""
    kept = installed_by(extras)
    return {
        package
        for package, owners in packages_distributions().items()
        if package != "context_builder" and not kept & {canonicalize_name(one) for one in owners}
    }


@pytest.mark.parametrize("name", RUNS)
def test_an_example_runs_with_the_extras_that_it_names(
    name: str, redis_server: RedisServer, migrated_url: str, tmp_path: Path
) -> None:
    if name == "livekit_agent":
        pytest.importorskip("livekit.agents", reason="pip install 'context-builder[livekit]'")
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
    (tmp_path / "sitecustomize.py").write_text(BLOCKING.format(names=absent(extras_of(name))), encoding="utf-8")
    environ = {
        "PYTHONPATH": f"{tmp_path}:{EXAMPLES}:{ROOT}",
        "HOME": str(tmp_path),
        "REDIS_URL": redis_server.url,
        "DATABASE_URL": migrated_url,
        "EMBEDDED_EMBEDDINGS": "false",
    }
    code = f"import asyncio, importlib\nexample = importlib.import_module({name!r})\n{RUNS[name]}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert TOLD[name] in done.stdout


@pytest.mark.parametrize(
    ("name", "environ", "told"),
    [
        ("openai_agents", {}, "set OPENAI_API_KEY"),
        ("openai_agents", {"OPENAI_API_KEY": "sk-x"}, "Redis is not available: 127.0.0.1:1: Connection refused"),
        ("langgraph_agent", {}, "Redis is not available: 127.0.0.1:1: Connection refused"),
        ("mcp_client", {}, "a store that this needs does not answer"),
    ],
)
def test_what_is_missing_is_told_in_a_line(
    name: str, environ: dict[str, str], told: str, migrated_url: str, tmp_path: Path
) -> None:
    stores = {"REDIS_URL": "redis://127.0.0.1:1", "DATABASE_URL": migrated_url, "EMBEDDED_EMBEDDINGS": "false"}
    environ = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), **stores, **environ}
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_pipecats_example_names_what_its_environment_has() -> None:
    assert extras_of("pipecat_bot") == {"embedded", "pipecat"}
