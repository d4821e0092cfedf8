"""What a program may import, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import context_builder

VENDORS = tuple("openai supabase asyncpg cedarpy redis tiktoken typer rich uvicorn starlette httpx".split())


NAMES = [
    "DOMAINS",
    "Analyst",
    "Archive",
    "AssemblyConfig",
    "BuiltContext",
    "Candidate",
    "Context",
    "ContextBuilder",
    "ContextBuilderError",
    "ContextBuilderMetrics",
    "ContextError",
    "ContextFormatter",
    "ContextMetadata",
    "ContextStrategy",
    "ContextType",
    "ConversationContext",
    "EmptyContext",
    "HealthState",
    "Memory",
    "MemoryFilter",
    "MemoryQuery",
    "MemorySource",
    "MemoryStore",
    "ModelType",
    "NoMemoryStore",
    "NoopRedactor",
    "PostgresMemory",
    "QueryStrategy",
    "Receipt",
    "RecentMessagesStrategy",
    "RedactorProtocol",
    "RetrievalQuery",
    "RollingSummaryStrategy",
    "SearchResult",
    "SemanticSearchStrategy",
    "SessionClient",
    "SessionConfig",
    "SessionMessagesStrategy",
    "Settings",
    "Signal",
    "SomaBrainClient",
    "SomaBrainOptions",
    "SomabrainHealthState",
    "StrategyError",
    "StrategyRequest",
    "SummaryRow",
    "TokenLimitExceeded",
    "TokenWindowManager",
    "UserPreferencesStrategy",
    "build_for_session",
    "count_tokens",
    "estimate_tokens",
    "load_settings",
    "open_builder",
    "open_memory",
    "session_turn",
]


def test_the_public_names() -> None:
    assert context_builder.__all__ == NAMES


@pytest.mark.parametrize("name", context_builder.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(context_builder, name).__doc__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'context_builder' has no attribute 'Missing'"):
        _ = context_builder.Missing


def imported_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after ``statement``."""
    script = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    root = Path(context_builder.__file__).parents[1]
    ran = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.engines
def test_importing_the_package_imports_no_vendor() -> None:
    assert imported_by("import context_builder").isdisjoint(VENDORS)


@pytest.mark.engines
def test_the_library_and_its_plain_text_analysis_need_no_vendor() -> None:
    statement = "from context_builder import ConversationContext; ConversationContext('monday')"
    assert imported_by(statement) & {*VENDORS} <= {"rich"}  # which structlog imports


@pytest.mark.engines
def test_help_and_the_short_commands_wait_for_no_vendor() -> None:
    shown = (
        "from typer.testing import CliRunner; from context_builder.cli import app; CliRunner().invoke(app, ['--help'])"
    )
    used = "from context_builder.cli import load; load('settings'), load('run'), load('serve')"
    assert imported_by(f"{shown}; {used}").isdisjoint(("openai", "supabase", "asyncpg", "tiktoken", "redis", "fastapi"))
