"""The prompt of a session that a daemon runs, or ran: its published state and its memories, within the budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_builder.assembly.build_turn import BuiltContext
from context_builder.assembly.builder import ContextBuilder
from context_builder.assembly.session_state import session_turn
from context_builder.errors import StoreError
from context_builder.session.client import SessionClient


async def build_for_session(
    client: SessionClient,
    builder: ContextBuilder,
    query: str = "",
    *,
    max_prompt_tokens: int | None = None,
    **named: Any,
) -> BuiltContext:
    """Return what is known of ``client``'s session and fits ``query``, as messages of ``max_prompt_tokens`` at most.

    Without a query, the newest thing said is answered; without a limit, the builder's holds. ``named`` are further
    keys of a turn, such as ``system_prompt``, ``tenant_id`` and ``user_id``. What that user prefers is told when space
    permits. Raises :class:`~context_builder.errors.StoreError` for a session that is not known, and what
    :meth:`ContextBuilder.build_for_turn` raises.
    """
    state = await client.remembered()
    if state is None:
        raise StoreError(f"{client.session_id} is not known: it never ran, or outlived its retention")
    return await build_for_state(state, builder, query, max_prompt_tokens=max_prompt_tokens, **named)


async def build_for_state(
    state: Mapping[str, Any],
    builder: ContextBuilder,
    query: str = "",
    *,
    max_prompt_tokens: int | None = None,
    **named: Any,
) -> BuiltContext:
    """Return what :func:`build_for_session` does for a session that publishes ``state``."""
    turn = session_turn(state, query, **named)
    return await builder.build_for_turn({"preferences": True, **turn}, max_prompt_tokens)
