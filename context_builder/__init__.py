"""Live conversation memory: a session's state while people talk.

What a program imports: :class:`ConversationContext` to use a conversation in its own process,
:class:`SessionClient` to talk to one that a daemon runs. The rest is for those who extend the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from context_builder.analysis.analyst import Analyst
    from context_builder.archive.archive import Archive, SummaryRow
    from context_builder.client import SessionClient
    from context_builder.conversation_context import ConversationContext
    from context_builder.domains import DOMAINS
    from context_builder.errors import ContextBuilderError
    from context_builder.session.rules import Rules

__all__ = [
    "DOMAINS",
    "Analyst",
    "Archive",
    "ContextBuilderError",
    "ConversationContext",
    "Rules",
    "SessionClient",
    "SummaryRow",
]

_HOMES = {
    "DOMAINS": "domains",
    "Analyst": "analysis.analyst",
    "Archive": "archive.archive",
    "ContextBuilderError": "errors",
    "ConversationContext": "conversation_context",
    "Rules": "session.rules",
    "SessionClient": "client",
    "SummaryRow": "archive.archive",
}


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used: a daemon does not pay for what it leaves alone."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
