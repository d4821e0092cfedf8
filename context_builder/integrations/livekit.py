"""For LiveKit Agents: what participants and agent say is said in a conversation, and replies know its record."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable
from functools import partial
from typing import Any, Final

from context_builder.errors import MissingExtra, needs_extra
from context_builder.integrations import live_session
from context_builder.integrations.live_session import LiveSession
from context_builder.integrations.outgoing import Outgoing
from context_builder.session.client import JsonObject

try:
    from livekit.agents import Agent, AgentSession, ConversationItemAddedEvent, UserInputTranscribedEvent
    from livekit.agents.llm import ChatChunk, ChatContext, ChatItem, ChatMessage, Tool
    from livekit.agents.types import FlushSentinel
    from livekit.agents.voice import ModelSettings
except ModuleNotFoundError as error:
    raise MissingExtra(needs_extra("livekit", "LiveKit Agents")) from error


MOST_HEARD: Final = 100
"""Newest transcripts by which a message of a user is known not to have been typed."""


class ConversationFeed:
    """Says in a session what is said in one or several of LiveKit's, in the background and in order.

    :meth:`close` it in the end.
    """

    def __init__(self, live: LiveSession) -> None:
        self._outgoing = Outgoing(live)

    def follow(self, session: AgentSession[Any], participant: str | None = None) -> None:
        """Follow a session: its final transcripts, messages that are typed, and what the agent says.

        Who speaks is the ``participant``, by identity; without one, whom the transcriber tells apart, else the
        participant that the session is linked to. Where several take part, each has a session of its own.
        """
        heard: deque[str] = deque(maxlen=MOST_HEARD)
        session.on("user_input_transcribed", partial(self._transcribed, session, participant, heard))
        session.on("conversation_item_added", partial(self._added, session, participant, heard))

    async def close(self) -> None:
        """Say the rest."""
        await self._outgoing.close()

    def _transcribed(
        self, session: AgentSession[Any], participant: str | None, heard: deque[str], event: UserInputTranscribedEvent
    ) -> None:
        if event.is_final and event.transcript.strip():
            heard.append(event.transcript)
            self._outgoing.hear(participant or event.speaker_id or _linked(session), event.transcript)

    def _added(
        self, session: AgentSession[Any], participant: str | None, heard: deque[str], event: ConversationItemAddedEvent
    ) -> None:
        item = event.item
        if not isinstance(item, ChatMessage):
            return
        text = item.text_content or ""
        if item.role == "assistant":
            self._outgoing.answer(text)
        elif item.role == "user":
            if not any(part.strip() in text for part in heard):  # it was typed
                self._outgoing.hear(participant or _linked(session), text)
            heard.clear()


class ConversationAgent(Agent):
    """Replies with the conversation's record: give it as the agent, or derive yours from it.

    Without Redis a reply goes out without the record, and the log says so.
    """

    def __init__(self, live: LiveSession, **options: Any) -> None:
        super().__init__(**options)
        self._live = live

    async def llm_node(
        self, chat_ctx: ChatContext, tools: list[Tool], model_settings: ModelSettings
    ) -> AsyncIterable[ChatChunk | str | FlushSentinel]:
        together = await with_record(self._live, chat_ctx)
        async for chunk in Agent.default.llm_node(self, together, tools, model_settings):
            yield chunk


async def with_record(live: LiveSession, chat_ctx: ChatContext) -> ChatContext:
    """Return the chat context with the conversation's record before the newest message of a user."""
    return ChatContext(await live_session.with_record(live, chat_ctx.items, _role_and_text, _message))


def _role_and_text(item: ChatItem) -> tuple[str, str]:
    return (item.role, item.text_content or "") if isinstance(item, ChatMessage) else (item.type, "")


def _message(one: JsonObject) -> ChatItem:
    return ChatMessage(role=one["role"], content=[one["content"]])


def _linked(session: AgentSession[Any]) -> str | None:
    """Return the identity of the participant whom the session listens to, if it is in a room."""
    try:
        participant = session.room_io.linked_participant
    except RuntimeError:
        return None
    return participant.identity if participant is not None else None
