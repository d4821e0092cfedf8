"""This route builds the prompt of a session's next turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import Field
from redis.asyncio import Redis

from context_builder.assembly.budget import Outcome, Receipt
from context_builder.assembly.build_turn import BuiltContext
from context_builder.errors import ContextError, TokenLimitExceeded
from context_builder.knowledge.artifact import CamelModel, Name, Text, Whole, at_most
from context_builder.knowledge.request import MAX_BUDGET, Scope
from context_builder.memory.filter import memory_filter
from context_builder.memory.memory import MemoryFilter
from context_builder.server.access.caller import Caller
from context_builder.server.guarded_route import (
    READER,
    CallerHere,
    OwnRedis,
    ServicesHere,
    SessionId,
    as_json,
    guarded_router,
)
from context_builder.server.problem import Problem, not_found
from context_builder.server.seen_session import seen_session
from context_builder.server.services import Knowing, Services

router = guarded_router("sessions")

_LONGEST_QUERY: Final = 100_000


class MemoryScope(CamelModel):
    """Narrows down the memories that take part: by who said them (a whole name), session, kinds, and days or moments,
    as a search of the memories does."""

    speaker: Name = ""
    session: Name = ""
    since: Annotated[Text, Field(max_length=40)] = ""
    until: Annotated[Text, Field(max_length=40)] = ""
    kinds: Annotated[tuple[Name, ...], Field(max_length=20), at_most(20)] = ()

    def filter(self) -> MemoryFilter:
        """Return the filter. Raises :class:`~context_builder.errors.FilterInvalid` for a time that cannot be read."""
        return memory_filter(
            speaker=self.speaker, session=self.session, since=self.since, until=self.until, kinds=self.kinds
        )


class TurnRequest(CamelModel):
    """Asks for a prompt of at most ``token_budget`` tokens that helps with ``query``.

    With a ``package_scope``, what the graph and documents hold for the query and the session takes part in it; of the
    memories, those that ``memories`` lets through.
    """

    query: Annotated[Text, Field(max_length=_LONGEST_QUERY)]
    token_budget: Annotated[Whole, Field(ge=1, le=MAX_BUDGET)]
    user_id: Annotated[Name, Field(min_length=1)] | None = None
    package_scope: Scope | None = None
    memories: MemoryScope | None = None


class TurnAnswer(CamelModel):
    """The messages for a model, their exact tokens, and what became of each candidate."""

    messages: list[dict[str, Any]]
    tokens_used: int
    receipts: list[dict[str, Any]]
    debug: dict[str, Any]


@router.post("/sessions/{session_id}/turn", openapi_extra=READER, response_model=TurnAnswer)
async def build_turn(
    session_id: SessionId, turn: TurnRequest, redis: OwnRedis, services: ServicesHere, caller: CallerHere
) -> Response:
    """Build the prompt of a session's next turn from what it publishes and what is remembered."""
    with refusals():
        built = await built_turn(session_id, turn, redis, services, caller)
    return await as_json(lambda: _answer(built).model_dump(mode="json", by_alias=True))


def _answer(built: BuiltContext) -> TurnAnswer:
    return TurnAnswer(
        messages=built.messages,
        tokens_used=built.token_counts["total"],
        receipts=[_receipt(one) for one in shown_receipts(built)],
        debug=built.debug,
    )


async def built_turn(
    session_id: str, turn: TurnRequest, redis: Redis, services: Services, caller: Caller
) -> BuiltContext:
    """Return the prompt of a turn, in which session and knowledge take part as far as the caller may see them."""
    named: dict[str, Any] = {"tenant_id": caller.tenant_id}
    if turn.user_id is not None:
        named["user_id"] = turn.user_id
    session = await seen_session(services, caller, session_id, redis)
    if (state := await session.state()) is None:
        raise not_found()
    own = None if session.is_redacted else session_id
    knowledge = Knowing(caller.agent, turn.package_scope, own)
    if turn.memories is not None:
        named["memory_filter"] = turn.memories.filter()
    return await services.build_turn(
        state, turn.query, max_prompt_tokens=turn.token_budget, knowledge=knowledge, **named
    )


def shown_receipts(built: BuiltContext) -> list[Receipt]:
    """Return the receipts that a caller is told: not of what is denied, which is as if it were not there."""
    return [one for one in built.receipts if one.outcome is not Outcome.DENIED]


@contextmanager
def refusals() -> Iterator[None]:
    """Answer what stops a turn's prompt as a problem."""
    try:
        yield
    except TokenLimitExceeded as error:
        detail = f"the turn {error}"
        raise Problem(422, "token_limit_exceeded", detail, requested=error.requested, limit=error.limit) from None
    except ContextError as error:
        raise Problem(422, "context_error", f"no context can be built: {type(error).__name__}") from None


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return receipt._asdict() | {"signals": [signal._asdict() for signal in receipt.signals]}
