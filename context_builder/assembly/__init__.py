"""The read side: from a turn and all that is remembered to messages that fit the token budget."""

from context_builder.assembly.builder import ContextBuilder
from context_builder.assembly.built_context import BuiltContext
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.context import Context, ContextMetadata, ModelType
from context_builder.assembly.estimate import estimate_tokens
from context_builder.assembly.formatter import ContextFormatter
from context_builder.assembly.health import HealthState
from context_builder.assembly.health import HealthState as SomabrainHealthState
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.assembly.model_window import window_of
from context_builder.assembly.preferences import Preference, stated_preferences
from context_builder.assembly.query import QueryKind, kind_of
from context_builder.assembly.receipt import Outcome, Receipt, added
from context_builder.assembly.rules import AssemblyRules
from context_builder.assembly.session_turn import session_turn
from context_builder.assembly.somabrain import SomaBrain
from context_builder.assembly.strategies import (
    ContextStrategy,
    QueryStrategy,
    RecentMessagesStrategy,
    Request,
    RollingSummaryStrategy,
    SemanticSearchStrategy,
    SessionMessagesStrategy,
    UserPreferencesStrategy,
)
from context_builder.assembly.window import TokenWindowManager

__all__ = [
    "AssemblyRules",
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
    "ModelType",
    "Outcome",
    "Preference",
    "QueryKind",
    "QueryStrategy",
    "Receipt",
    "RecentMessagesStrategy",
    "Request",
    "RollingSummaryStrategy",
    "SemanticSearchStrategy",
    "SessionMessagesStrategy",
    "SomaBrain",
    "SomabrainHealthState",
    "TokenWindowManager",
    "UserPreferencesStrategy",
    "added",
    "estimate_tokens",
    "kind_of",
    "session_turn",
    "stated_preferences",
    "window_of",
]
