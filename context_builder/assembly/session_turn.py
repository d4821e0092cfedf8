"""A turn made of a session's published state."""

from __future__ import annotations

from typing import Any

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.formatter import spoken
from context_builder.assembly.published import State, said, summarized, topic


def session_turn(state: State, query: str = "", **named: Any) -> dict[str, Any]:
    """The envelope for :meth:`ContextBuilder.build_for_turn`: messages as history, then summary and topic.

    Without a ``query`` the newest thing that people said is the turn's message. A message that is the turn's own is
    not in its history too. ``named`` are further keys of the envelope, such as ``tenant_id``.
    """
    messages = said(state)
    newest = next((message for message in messages if message.role == "user"), None)
    if newest is not None and (not query.strip() or newest.text.strip() == query.strip()):
        query = query if query.strip() else spoken(newest)["content"]
        messages.remove(newest)
    return {
        "session_id": state.get("session_id"),
        "user_message": query,
        "history": [spoken(message) for message in reversed(messages)],
        "summary": [_entry(known) for known in reversed([*topic(state), *summarized(state)])],
        **named,
    }


def _entry(known: Candidate) -> dict[str, str]:
    return {"id": known.id, "text": known.text}
