"""The names of the read side that others may import."""

from context_builder.assembly.budget import Outcome, Receipt, added
from context_builder.assembly.build_context import Context, ContextFormatter, ContextMetadata, ModelType
from context_builder.assembly.build_turn import BuiltContext
from context_builder.assembly.builder import ContextBuilder
from context_builder.assembly.candidate import Candidate, ContextType, Signal
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.govern import Access, AccessPolicy, AccessQuestion, Ruling
from context_builder.assembly.health import HealthState
from context_builder.assembly.health import HealthState as SomabrainHealthState
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.assembly.preference_history import Preference, stated_preferences
from context_builder.assembly.query_kind import QueryKind, kind_of
from context_builder.assembly.session_state import session_turn
from context_builder.assembly.sources import MemorySource, RetrievalQuery, SomaBrain
from context_builder.assembly.strategies import (
    ContextStrategy,
    QueryStrategy,
    RecentMessagesStrategy,
    RollingSummaryStrategy,
    SemanticSearchStrategy,
    SessionMessagesStrategy,
    StrategyRequest,
    UserPreferencesStrategy,
)
from context_builder.assembly.token_window import TokenWindowManager, window_of
from context_builder.tokens.counter import estimate_tokens

__all__ = [
    "Access",
    "AccessPolicy",
    "AccessQuestion",
    "AssemblyConfig",
    "BuiltContext",
    "Candidate",
    "Context",
    "ContextBuilder",
    "ContextBuilderMetrics",
    "ContextFormatter",
    "ContextMetadata",
    "ContextStrategy",
    "ContextType",
    "HealthState",
    "MemorySource",
    "ModelType",
    "Outcome",
    "Preference",
    "QueryKind",
    "QueryStrategy",
    "Receipt",
    "RecentMessagesStrategy",
    "RetrievalQuery",
    "RollingSummaryStrategy",
    "Ruling",
    "SemanticSearchStrategy",
    "SessionMessagesStrategy",
    "Signal",
    "SomaBrain",
    "SomabrainHealthState",
    "StrategyRequest",
    "TokenWindowManager",
    "UserPreferencesStrategy",
    "added",
    "estimate_tokens",
    "kind_of",
    "session_turn",
    "stated_preferences",
    "window_of",
]
