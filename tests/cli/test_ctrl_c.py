"""Ctrl-C while a command starts, at whatever moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from context_builder.__main__ import main
from context_builder.engines.engine import free_port
from context_builder.engines.postgres import PostgresEngine
from context_builder.engines.redis import RedisEngine
from tests.services.daemon import ROOT
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE

pytestmark = pytest.mark.engines

BEGIN = """
import sys
from context_builder.__main__ import main

class Begun:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "context_builder.cli":  # what main loads first, so the signal is its to answer
            print("begun", flush=True)

sys.meta_path.insert(0, Begun)
main()
"""

BEGIN_WITH_ENGINES = f"""
import sys
from context_builder.wiring import servers
servers.STANDARD_PORT = int(sys.argv.pop(1))
{BEGIN}"""

SWALLOW = """
import os, signal, sys, weakref
from context_builder.__main__ import main

class Swallowing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "context_builder.cli":
            short_lived = Swallowing()
            sys.heard = weakref.ref(short_lived, lambda _: os.kill(os.getpid(), signal.SIGINT))

sys.meta_path.insert(0, Swallowing)
sys.argv[1:] = ["--version"]
main()
"""
"""The interrupt comes within a weak reference's callback, as imports have them: Python ignores what is raised there."""

CLEAN = {0, 130, -signal.SIGINT}
"""Also as if the signal had ended it: CPython does that itself when it comes within an ``exec``, as of dataclasses."""


def interrupted(folder: Path, program: list[str], after: float, times: int = 1, **settings: object) -> tuple[int, str]:
    """Exit status and output of the program that gets SIGINT ``after`` seconds from when it is ours to answer."""
    inherited = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "CONTEXT_BUILDER_HOME": str(folder / "home")}
    inherited["EMBEDDED_EMBEDDINGS"] = "false"
    with subprocess.Popen(
        [sys.executable, "-c", *program],
        env=inherited | {name.upper(): str(value) for name, value in settings.items()},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        for _ in range(times):
            time.sleep(after)  # the moment is what this is about
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output


@pytest.mark.parametrize(
    ("command", "after"),
    [
        *((("run", "monday"), after) for after in (0.0, 0.05, 0.2, 0.5, 0.9, 1.4)),
        *((command, after) for command in (("watch", "monday"), ("demo",)) for after in (0.0, 0.5)),
    ],
)
def test_it_ends_without_a_traceback(
    redis_server: RedisServer, tmp_path: Path, command: tuple[str, ...], after: float
) -> None:
    Redis.from_url(redis_server.url).flushall()
    nowhere = f"postgresql://127.0.0.1:{free_port()}/none"
    status, output = interrupted(tmp_path, [BEGIN, *command], after, redis_url=redis_server.url, database_url=nowhere)
    assert status in CLEAN, output
    assert "Traceback" not in output


def test_an_import_does_not_swallow_it() -> None:
    program = subprocess.run(
        [sys.executable, "-c", SWALLOW], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert program.returncode == 130, program.stdout
    assert not program.stderr


def test_where_it_is_ignored_it_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["context-builder", "--version"])
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup and background jobs have it
    try:
        with pytest.raises(SystemExit):
            main()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_a_class_is_made_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted_class() -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr("context_builder.cli.load", lambda _: interrupted_class())
    monkeypatch.setattr("sys.argv", ["context-builder", "run", "monday"])
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130


@pytest.fixture
def home(engine_folder: Path) -> Iterator[Path]:
    """A folder with no home yet; the engines of the one made in it are stopped."""
    folder = Path(tempfile.mkdtemp(prefix="ctrl-c-", dir=engine_folder))
    folder.chmod(0o755)
    yield folder
    RedisEngine(folder / "home").stop()
    PostgresEngine(folder / "home").stop()


@pytest.mark.parametrize(("after", "times"), [(1.5, 1), (0.4, 5)])
def test_while_the_engines_start_it_leaves_them_whole(home: Path, after: float, times: int) -> None:
    port = free_port()
    program = [BEGIN_WITH_ENGINES, str(port), "run", "monday"]
    status, output = interrupted(home, program, after, times, redis_port=port)
    assert status in CLEAN, output
    assert "Traceback" not in output
    for engine in (RedisEngine(home / "home", port), PostgresEngine(home / "home")):
        assert engine.ensure()
