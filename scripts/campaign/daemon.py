"""The daemon as a process that is started, killed, paused and waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.services.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]

SETTINGS: Mapping[str, str] = {
    "OPENAI_API_KEY": "none",
    "LOG_FORMAT": "json",
    "RAW_BUFFER_TIME_WINDOW": "2",
    "RAW_BUFFER_MAX_MESSAGES": "150",
    "LEASE_TIME": "3",
    "LLM_TIMEOUT": "1.5",
    "LLM_ATTEMPTS": "2",
    # Nothing may be condensed and no model given up: the summary is the record of what it was made of.
    "SUMMARY_RETRY_INTERVAL": "2",  # a model that does not answer to any purpose three times in a row is given up
    "SUMMARY_MAX_TOKENS": "10000000",
    "PENDING_MAX_MESSAGES": "10000000",
    "PENDING_MAX_TOKENS": "10000000",
    "SUMMARY_INPUT_TOKENS": "650",  # at most 60 messages, of which each is quoted, so that what was struck is found
}
"""Everything happens often, so that a fault falls into everything."""

LEASE: Final = float(SETTINGS["LEASE_TIME"])

CROWDED: Final[Mapping[str, str]] = {"PENDING_MAX_MESSAGES": "30", "SUMMARY_RETRY_INTERVAL": "0.5"}
"""Of a session that does without the model as soon as it fails; its summaries do not name every message."""


def command(mutation: str | None, *arguments: str, hosted: bool = False) -> list[str]:
    """``context-builder ARGUMENTS``; ``mutation`` names a fault that is built in. What is ``hosted`` has a host."""
    program = ["scripts.campaign.mutant", mutation] if mutation else ["context_builder"]
    if hosted:
        program = ["scripts.campaign.hosted"]
    return [sys.executable, "-m", *program, *arguments]


class Daemon:
    """One process, started by ``command``, that runs a session."""

    def __init__(self, session_id: str, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        self._command = command
        self._environ = environ
        self._folder = folder
        self._log = folder / f"{session_id}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._begins_at = 0

    def start(self, *options: str) -> None:
        with self._log.open("ab") as log:
            self._begins_at = log.tell()
            self._process = subprocess.Popen(
                [*self._command, *options],
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None, "the daemon was not started"
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status; ``None`` while it runs."""
        return self._process.poll() if self._process is not None else -1

    def has_said(self, words: str) -> bool:
        """Whether it has, since it was started."""
        with self._log.open("rb") as log:
            log.seek(self._begins_at)
            return words.encode() in log.read()

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    async def kill(self) -> None:
        """SIGKILL: it gets no chance to do anything more."""
        self.signal(signal.SIGKILL)
        await self.ended()

    def signal(self, number: signal.Signals) -> None:
        if self.status is None:
            os.kill(self.pid, number)

    async def ended(self, timeout: float = 10.0) -> int | None:
        """The exit status, or ``None`` when it still runs after ``timeout`` seconds."""
        with suppress(AssertionError):
            await wait_until(lambda: self.status is not None, "the daemon ends", timeout, poll=0.002)
        return self.status
