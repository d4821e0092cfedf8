"""Live conversation memory: a session's state while people talk, and prompts that fit.

What a program imports: :class:`ConversationContext` to use a conversation in its own process,
:class:`SessionClient` to talk to one that a daemon runs, :class:`ContextBuilder` to make prompts, of a turn or of
strategies, and :func:`build_for_session` to make that of a session. :func:`open_builder` opens a builder as the
settings of :func:`load_settings` want it, :func:`open_memory` the memory alone. The rest is for those who extend the
package.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers know better; importing typing takes time in which Ctrl-C cannot be caught yet

if TYPE_CHECKING:
    from context_builder.analysis.analyst import Analyst
    from context_builder.archive.archive import Archive, SummaryRow
    from context_builder.assembly import (
        AssemblyConfig,
        BuiltContext,
        Candidate,
        Context,
        ContextBuilder,
        ContextBuilderMetrics,
        ContextFormatter,
        ContextMetadata,
        ContextStrategy,
        ContextType,
        HealthState,
        MemorySource,
        ModelType,
        QueryStrategy,
        Receipt,
        RecentMessagesStrategy,
        RetrievalQuery,
        RollingSummaryStrategy,
        SemanticSearchStrategy,
        SessionMessagesStrategy,
        Signal,
        SomabrainHealthState,
        StrategyRequest,
        TokenWindowManager,
        UserPreferencesStrategy,
        estimate_tokens,
        session_turn,
    )
    from context_builder.domains import DOMAINS
    from context_builder.errors import (
        ContextBuilderError,
        ContextError,
        EmptyContext,
        NoMemoryStore,
        StrategyError,
        TokenLimitExceeded,
    )
    from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, MemoryStore, SearchResult
    from context_builder.memory.options import SomaBrainOptions
    from context_builder.memory.somabrain import SomaBrainClient
    from context_builder.memory.sql_memory import PostgresMemory
    from context_builder.redaction.redactor import NoopRedactor, RedactorProtocol
    from context_builder.session.client import SessionClient
    from context_builder.session.config import SessionConfig
    from context_builder.session.conversation_context import ConversationContext
    from context_builder.settings.settings import Settings, load_settings
    from context_builder.tokens.counter import count_tokens
    from context_builder.wiring.builders import build_for_session, open_builder
    from context_builder.wiring.stores import open_memory

__all__ = [
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

_HOMES = {
    "DOMAINS": "domains",
    "Analyst": "analysis.analyst",
    "Archive": "archive.archive",
    "ContextBuilderError": "errors",
    "ContextError": "errors",
    "ConversationContext": "session.conversation_context",
    "EmptyContext": "errors",
    "SearchResult": "memory.memory",
    "Memory": "memory.memory",
    "MemoryFilter": "memory.memory",
    "MemoryQuery": "memory.memory",
    "MemoryStore": "memory.memory",
    "NoMemoryStore": "errors",
    "NoopRedactor": "redaction.redactor",
    "PostgresMemory": "memory.sql_memory",
    "RedactorProtocol": "redaction.redactor",
    "SessionConfig": "session.config",
    "SessionClient": "session.client",
    "Settings": "settings.settings",
    "SomaBrainClient": "memory.somabrain",
    "SomaBrainOptions": "memory.options",
    "StrategyError": "errors",
    "SummaryRow": "archive.archive",
    "TokenLimitExceeded": "errors",
    "build_for_session": "wiring.builders",
    "count_tokens": "tokens.counter",
    "load_settings": "settings.settings",
    "open_builder": "wiring.builders",
    "open_memory": "wiring.stores",
}
"""Modules of the names that are not from ``assembly``."""


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that a daemon does not pay for what it leaves alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from context_builder.log import leave_to_logging

    leave_to_logging()
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'assembly')}"), name)
