"""The tutorial, as a newcomer types it: every command of the page, in order, each terminal a shell of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import context_builder
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow]

ROOT = Path(context_builder.__file__).parents[1]
PAGE = ROOT / "docs/tutorial.md"
STAYS = ("context-builder run", "python scripts/examples/")
"""What goes on until the session ends; whatever else is typed is waited for."""

FASTER = {"--speed 2": "--speed 10", "RAW_BUFFER_TIME_WINDOW=20": "RAW_BUFFER_TIME_WINDOW=4"}
SILENCE = 1.0
"""Seconds: with the meeting five times as fast as on the page, everything is."""

PREPARES, SPEAKS, TYPES = "Terminal 2", "Terminal 3", "Terminal 4"


def typed() -> list[tuple[str, str]]:
    """The page's terminals and commands, in order."""
    blocks = re.findall(r'^```bash title="(.*?)"\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [(terminal, command) for terminal, block in blocks for command in block.splitlines()]


def printed() -> list[tuple[str, str]]:
    """What the page says that terminals show, each line with its terminal."""
    blocks = re.findall(r'^```text title="(.*?)"\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [(terminal, line) for terminal, block in blocks for line in block.splitlines()]


class Terminal:
    """A shell in ``folder``; each command is typed into it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._said = (folder / f"{len([*folder.glob('*.out')])}.out").open("w+b")
        self._done = 0
        self.process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        return os.pread(self._said.fileno(), 1_000_000, 0).decode()

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\necho status $?\n".encode())
        self.process.stdin.flush()
        self._done += 1

    @property
    def is_done(self) -> bool:
        """Whether all that was typed is done; fails when something of it failed."""
        statuses = re.findall(r"^status (\d+)$", self.output, re.MULTILINE)
        assert set(statuses) <= {"0"}, self.output
        return len(statuses) == self._done

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        self._said.close()


@pytest.fixture
def terminals(redis_server: RedisServer, migrated_url: str, tmp_path: Path) -> Iterator[dict[str, Terminal]]:
    """Four terminals in a checkout; its virtual environment is this test's, and so are the engines."""
    for name in ("context_builder", "scripts", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    stubs = tmp_path / ".venv/bin"
    stubs.mkdir(parents=True)
    for program in ("python3", "pip"):  # which would make the environment that is here
        (stubs / program).write_text('#!/bin/sh\necho "$0 $*"\n')
        (stubs / program).chmod(0o755)
    path = f"{stubs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    (stubs / "activate").write_text("activated=1\n")
    environment = {
        **{name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ},
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "REDIS_URL": redis_server.url,
        "DATABASE_URL": migrated_url,
        "CONTEXT_BUILDER_HOME": str(tmp_path / "home"),
        "EMBEDDED_EMBEDDINGS": "false",
        "SILENCE_THRESHOLD": str(SILENCE),
    }
    opened = {name: Terminal(tmp_path, environment) for name in dict.fromkeys(name for name, _ in typed())}
    yield opened
    for name, terminal in opened.items():
        terminal.close()
        print(f"--- {name}\n{(tmp_path / terminal._said.name).read_text()}")  # shown when the story fails


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_every_command_of_the_tutorial_does_what_the_page_says(
    terminals: dict[str, Terminal], redis: object
) -> None:
    for name, command in typed():
        terminal = terminals[name]
        for slow, fast in FASTER.items():
            command = command.replace(slow, fast)
        terminal.type(command)
        if not any(one in command for one in STAYS):
            await wait_until(lambda t=terminal: t.is_done, f"done: {command}", timeout=120, poll=0.1)
        elif "run" in command:
            await wait_until(lambda t=terminal: "session.ready" in t.output, "the session runs")
        if "replay" in command:
            assert "prepared (P" in terminals[PREPARES].output
            assert "Consilience: " in terminals[SPEAKS].output
        if 'send meeting "Consilience' in command:
            for shows, line in printed():
                await wait_until(lambda n=shows, s=line: s in terminals[n].output, f"{shows} shows: {line}")
        if " end " in command:
            for ending in (PREPARES, SPEAKS, "Terminal 1"):
                await wait_until(lambda n=ending: terminals[n].is_done, f"{ending} has ended")
    told = terminals[TYPES].output
    assert "Consilience" in told.partition("context-builder")[0], "what the assistant said is part of the summary"
    assert "Forgot session meeting" in told


def test_it_installs_what_the_project_has() -> None:
    (install,) = (command for _, command in typed() if command.startswith("pip "))
    assert "--constraint constraints.txt" in install
    assert "'.[standalone]'" in install


def test_the_programs_are_short_and_stand_alone() -> None:
    for name in ("orchestrator", "delivery_monitor"):
        code = (ROOT / f"scripts/examples/{name}.py").read_text("utf-8")
        assert "import context_builder" not in code
        assert "from context_builder" not in code
        assert len([line for line in code.splitlines() if line.strip()]) <= 80
