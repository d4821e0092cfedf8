"""For LiveKit Agents: what participants and agent say is said in a conversation, and replies know its record."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from context_builder.errors import MissingExtra, needs_extra
from context_builder.integrations import live_session
from context_builder.integrations.live_session import LiveSession, Outgoing, known_beside
from context_builder.session.client import JsonObject
from context_builder.session.config import SessionConfig
from context_builder.transcript.repeats import RestatedSpeech, without, words

try:
    from livekit.agents import (
        Agent,
        AgentSession,
        AgentStateChangedEvent,
        ConversationItemAddedEvent,
        UserInputTranscribedEvent,
        UserStateChangedEvent,
    )
    from livekit.agents.llm import AgentConfigUpdate, AgentHandoff, ChatChunk, ChatContext, ChatItem, ChatMessage, Tool
    from livekit.agents.types import FlushSentinel
    from livekit.agents.voice import ModelSettings
    from livekit.rtc import EventEmitter
except ModuleNotFoundError as error:
    raise MissingExtra(needs_extra("livekit", "LiveKit Agents")) from error


MOST_HEARD: Final = 100
"""Newest transcripts by which a message of a user is known not to have been typed."""


class _SessionSpeech:
    """What was said lately in one of LiveKit's sessions, to recognize what comes again."""

    def __init__(self) -> None:
        self._heard: deque[str] = deque(maxlen=MOST_HEARD)
        self._restated = RestatedSpeech()
        self._answer = ""
        self._was_cut_off = False
        self._spoken = ""
        self.agent: str | None = None
        """Name of the agent that speaks; None where it is the only one."""

    def transcribed(self, speaker: str | None, text: str) -> str:
        """Return what is new of a final transcript."""
        self._heard.append(text)
        self._answer = ""
        return self._restated.unsaid(speaker, text)

    def typed(self, text: str) -> bool:
        """Return whether a user's message was typed, not transcribed before."""
        was_heard = any(part.strip() in text for part in self._heard) or text == self._spoken
        self._heard.clear()
        self._spoken = text if was_heard else ""
        if not was_heard:
            self._answer = ""
        return not was_heard

    def answered(self, text: str, *, cut_off: bool) -> str:
        """Return what is new of an answer: one that was cut off may be committed twice, under a new id.

        The agent may say the same again once somebody else has spoken.
        """
        before, now = words(self._answer), words(text)
        may_be_again = before and (cut_off or self._was_cut_off)
        self._spoken = ""
        if may_be_again and before[: len(now)] == now:
            return ""
        self._answer, self._was_cut_off = text, cut_off
        return without(text, len(before)) if may_be_again and now[: len(before)] == before else text


if TYPE_CHECKING:

    class SilenceEmitter(EventEmitter[Literal["silence"]]): ...

else:  # where something stands in for LiveKit, its emitter may be not a generic class
    SilenceEmitter = EventEmitter


class ConversationFeed(SilenceEmitter):
    """Sends what is said in one or several of LiveKit's sessions to one of ours, in the background and in order.

    ``names`` are those of participants by identity, of speakers whom a transcriber tells apart, and of agents by id;
    that of ``""`` is for who speaks or types where nothing tells who, as in LiveKit's console.
    The only agent speaks as the assistant; after a handoff each has its name, else its id. Of a reply that was
    interrupted, what was spoken is kept, with a dash after it where it stops within a sentence.

    The event ``silence`` comes when nobody, agents included, has spoken for ``silence`` seconds, once in each silence,
    with these seconds. :meth:`close` it in the end.
    """

    def __init__(
        self, live: LiveSession, *, names: Mapping[str, str] | None = None, silence: float = SessionConfig().silence
    ) -> None:
        super().__init__()
        self._outgoing = Outgoing(live)
        self._names = dict(names or {})
        self._seconds = silence
        self._speaking: set[tuple[int, str]] = set()
        self._silence: asyncio.TimerHandle | None = None
        self._telling: set[asyncio.Task[None]] = set()

    def follow(self, session: AgentSession[Any], participant: str | None = None) -> None:
        """Follow a session: its final transcripts, messages that are typed, and what the agent says.

        Who speaks is the ``participant``, by identity; without one, whom the transcriber tells apart, else the
        participant that the session is linked to. Where several take part, each has a session of its own. A realtime
        model gets the record in the instructions of its :class:`ConversationAgent`, anew whenever the agent listens.
        """
        speech = _SessionSpeech()
        session.on("user_input_transcribed", partial(self._transcribed, session, participant, speech))
        session.on("conversation_item_added", partial(self._added, session, participant, speech))
        session.on("user_state_changed", partial(self._changed, session, "user"))
        session.on("agent_state_changed", partial(self._changed, session, "agent"))

    async def close(self) -> None:
        """Say the rest."""
        self._stop_waiting()
        for task in self._telling:
            task.cancel()
        await self._outgoing.close()

    def _changed(
        self, session: AgentSession[Any], who: str, event: UserStateChangedEvent | AgentStateChangedEvent
    ) -> None:
        if event.new_state == "away":  # nobody has spoken for a while, so the silence goes on
            return
        self._stop_waiting()
        if event.new_state in {"speaking", "thinking"}:
            self._speaking.add((id(session), who))
        else:
            self._speaking.discard((id(session), who))
        if not self._speaking:
            self._silence = asyncio.get_running_loop().call_later(self._seconds, self.emit, "silence", self._seconds)
        if (
            who == "agent"
            and event.new_state == "listening"
            and isinstance(agent := _agent(session), ConversationAgent)
        ):
            task = asyncio.create_task(agent.tell_record(), name="tells a realtime model the record")
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def _stop_waiting(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _named(self, speaker: str | None) -> str | None:
        return self._names.get(speaker or "", speaker)

    def _transcribed(
        self,
        session: AgentSession[Any],
        participant: str | None,
        speech: _SessionSpeech,
        event: UserInputTranscribedEvent,
    ) -> None:
        if event.is_final and event.transcript.strip():
            speaker = participant or event.speaker_id or _linked(session)
            self._outgoing.hear(self._named(speaker), speech.transcribed(speaker, event.transcript))

    def _added(
        self,
        session: AgentSession[Any],
        participant: str | None,
        speech: _SessionSpeech,
        event: ConversationItemAddedEvent,
    ) -> None:
        item = event.item
        if isinstance(item, AgentHandoff):
            is_first = item.old_agent_id is None
            speech.agent = self._names.get(item.new_agent_id, None if is_first else item.new_agent_id)
        if not isinstance(item, ChatMessage):
            return
        text = item.text_content or ""
        if item.role == "assistant":
            was_cut_off = bool(item.interrupted)
            said = speech.answered(text, cut_off=was_cut_off)
            self._outgoing.answer(said, agent=speech.agent, interrupted=was_cut_off)
        elif item.role == "user" and speech.typed(text):
            self._outgoing.hear(self._named(participant or _linked(session)), text)


class ConversationAgent(Agent):
    """Replies with the conversation's record: give it as the agent, or derive yours from it.

    Without Redis a reply goes out without the record, and the log says so. A realtime model passes by
    :meth:`llm_node`: it is told the record in its instructions, by :meth:`tell_record`.
    """

    def __init__(self, live: LiveSession, **options: Any) -> None:
        super().__init__(**options)
        self._live = live
        self._own_instructions = self.instructions
        self._told_instructions = (self.instructions, self.instructions)
        self._one_at_a_time = asyncio.Lock()

    async def tell_record(self) -> None:
        """Put the record, as it is now, behind the instructions of a realtime model; of any other, change nothing."""
        async with self._one_at_a_time:  # or an older record would replace a newer one
            try:
                realtime = self.realtime_llm_session
            except RuntimeError:  # another model, or it does not run
                return
            known = [_role_and_text(one) for one in realtime.chat_ctx.items]
            record = await self._live.instructions(known)
            if self.instructions not in self._told_instructions:  # the program has changed them
                self._own_instructions = self.instructions
            own = self._own_instructions
            plain = own if isinstance(own, str) else own.render(modality="audio")
            if (told := f"{plain}\n\n{record}".strip() if record else plain) != self.instructions:
                self._told_instructions = (self.instructions, told)  # either is there, should telling fail
                await self.update_instructions(told)

    async def llm_node(
        self, chat_ctx: ChatContext, tools: list[Tool], model_settings: ModelSettings
    ) -> AsyncIterable[ChatChunk | str | FlushSentinel]:
        together = await with_record(self._live, chat_ctx)
        async for chunk in Agent.default.llm_node(self, together, tools, model_settings):
            yield chunk


async def with_record(live: LiveSession, chat_ctx: ChatContext) -> ChatContext:
    """Return the chat context with the conversation's record merged into its messages.

    What the record knows beside the talk is part of the instructions' message: LiveKit gives Anthropic, Google and
    others any further system message as ``<instructions>`` of the user, and what people said is none.
    """
    together = await live_session.with_record(live, chat_ctx.items, _role_and_text, _message, _said_as)
    beside, items = known_beside(together, chat_ctx.items, _role_and_text)
    if not beside:
        return ChatContext(items)
    first = items[0] if items else None
    if isinstance(first, ChatMessage) and first.role in {"system", "developer"}:
        items[0] = first.model_copy(update={"content": [*first.content, f"\n{beside}"]})  # each part is a line
    else:
        items.insert(0, ChatMessage(role="system", content=[beside]))
    return ChatContext(items)


def _role_and_text(item: ChatItem) -> tuple[str, str]:
    match item:
        case ChatMessage():
            return item.role, item.text_content or ""
        case AgentHandoff() | AgentConfigUpdate():  # notes, which belong to no answer
            return "system", ""
    return item.type, ""


def _message(one: JsonObject) -> ChatItem:
    return ChatMessage(role=one["role"], content=[one["content"]])


def _said_as(item: ChatItem, text: str) -> ChatItem:
    if not isinstance(item, ChatMessage):
        return item
    others = [part for part in item.content if not isinstance(part, str)]
    return item.model_copy(update={"content": [text, *others]})


def _agent(session: AgentSession[Any]) -> Agent | None:
    """Return the session's agent; None before it has started."""
    try:
        return session.current_agent
    except RuntimeError:
        return None


def _linked(session: AgentSession[Any]) -> str | None:
    """Return the identity of the participant whom the session listens to, if it is in a room."""
    try:
        participant = session.room_io.linked_participant
    except RuntimeError:
        return None
    return participant.identity if participant is not None else None
