"""Ways to find what belongs into a context."""

from context_builder.assembly.strategies.builtin import (
    QueryStrategy,
    RecentMessagesStrategy,
    RollingSummaryStrategy,
    SemanticSearchStrategy,
    SessionMessagesStrategy,
    UserPreferencesStrategy,
)
from context_builder.assembly.strategies.strategy import ContextStrategy, Request

__all__ = [
    "ContextStrategy",
    "QueryStrategy",
    "RecentMessagesStrategy",
    "Request",
    "RollingSummaryStrategy",
    "SemanticSearchStrategy",
    "SessionMessagesStrategy",
    "UserPreferencesStrategy",
]
