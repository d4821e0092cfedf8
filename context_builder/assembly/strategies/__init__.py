"""Ways to find what belongs into a context."""

from context_builder.assembly.strategies.by_query import QueryStrategy
from context_builder.assembly.strategies.recent import RecentMessagesStrategy, SessionMessagesStrategy
from context_builder.assembly.strategies.rolling_summary import RollingSummaryStrategy
from context_builder.assembly.strategies.semantic import SemanticSearchStrategy
from context_builder.assembly.strategies.strategy import ContextStrategy, Request
from context_builder.assembly.strategies.user_preferences import UserPreferencesStrategy

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
