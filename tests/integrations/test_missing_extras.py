"""Without its extra, an adapter says in one line how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.engines
@pytest.mark.parametrize(
    ("adapter", "library", "extra"),
    [
        ("openai_agents", "agents", "openai-agents"),
        ("langchain", "langchain_core", "langchain"),
        ("langchain", "langgraph", "langchain"),
        ("livekit", "livekit", "livekit"),
        ("pipecat", "pipecat", "pipecat"),
    ],
)
def test_it_names_the_extra(adapter: str, library: str, extra: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; import context_builder.integrations.{adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("context_builder.errors.MissingExtra: ")
    assert last.endswith(f"needs the extra {extra}: pip install 'context-builder[{extra}]'")
