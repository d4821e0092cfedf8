"""These routes correct messages, call speakers otherwise, and strike what was said."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import Field

from context_builder.knowledge.artifact import CamelModel
from context_builder.server.guarded_route import WRITER, OwnRedis, SessionId, guarded_router
from context_builder.server.revisions import correct_message, rename_speaker, strike_message
from context_builder.server.routes.sessions import AcceptedAnswer
from context_builder.server.seen_session import MUST_BE_SEEN, SeenHere
from context_builder.session.client import SessionClient

router = guarded_router("sessions")

_REVISION: Final[dict[str, Any]] = {
    "dependencies": [MUST_BE_SEEN],
    "openapi_extra": WRITER,
    "status_code": 202,
    "response_model_exclude_defaults": True,
}

MessageName = Annotated[str, Path(max_length=400, description="The number of a message, or its id as `id:12`.")]


class CorrectionBody(CamelModel):
    """What a message says from now on; a field that is left out stays as it was."""

    text: str | None = None
    speaker: str | None = None


class SpeakerBody(CamelModel):
    """The name that a speaker is given."""

    name: str = Field(min_length=1)


@router.patch("/sessions/{session_id}/messages/{message}", **_REVISION)
async def correct(
    session_id: SessionId, message: MessageName, body: CorrectionBody, redis: OwnRedis, seen: SeenHere
) -> AcceptedAnswer:
    """Correct the words of a message, its speaker, or both; everything that rests on it follows.

    403 for what the caller is shown redacted: only who sees the words may correct them.
    """
    await correct_message(SessionClient(redis, session_id), seen, message, body.text, body.speaker)
    return AcceptedAnswer(accepted=1)


@router.delete("/sessions/{session_id}/messages/{message}", **_REVISION)
async def strike(session_id: SessionId, message: MessageName, redis: OwnRedis) -> AcceptedAnswer:
    """Strike a message: nothing of it is left anywhere, and it does not come back."""
    await strike_message(SessionClient(redis, session_id), message)
    return AcceptedAnswer(accepted=1)


@router.put("/sessions/{session_id}/speakers/{speaker}", **_REVISION)
async def rename(
    session_id: SessionId,
    speaker: Annotated[str, Path(max_length=1_000, description="What the speaker is called now.")],
    body: SpeakerBody,
    redis: OwnRedis,
) -> AcceptedAnswer:
    """Call a speaker otherwise, in all that was said from the beginning on, and is yet to be said."""
    await rename_speaker(SessionClient(redis, session_id), speaker, body.name)
    return AcceptedAnswer(accepted=1)
