"""Without its extra, an adapter says in one line how to install it."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from context_builder.errors import MissingExtra


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
def test_it_names_the_extra(adapter: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    name = f"context_builder.integrations.{adapter}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(MissingExtra) as raised:
        import_module(name)
    assert str(raised.value).endswith(f"needs the extra {extra}: pip install 'context-builder[{extra}]'")
