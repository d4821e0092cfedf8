"""Ways to find what belongs into a context."""

from context_builder.assembly.strategies.builtin import (
    QueryStrategy,
    RecentMessagesStrategy,
    RollingSummaryStrategy,
    SemanticSearchStrategy,
    SessionMessagesStrategy,
    UserPreferencesStrategy,
)
from context_builder.assembly.strategies.strategy import ContextStrategy, StrategyRequest

__all__ = [
    "ContextStrategy",
    "QueryStrategy",
    "RecentMessagesStrategy",
    "RollingSummaryStrategy",
    "SemanticSearchStrategy",
    "SessionMessagesStrategy",
    "StrategyRequest",
    "UserPreferencesStrategy",
]
