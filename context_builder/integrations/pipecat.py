"""For Pipecat: transcriptions are said in a conversation, and the model's context gets its record.

Two processors, as a pipeline's user aggregator keeps transcriptions to itself: :class:`ConversationListener` before it,
:class:`ConversationRecord` between it and the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from context_builder.clock import moment
from context_builder.errors import MissingExtra, needs_extra
from context_builder.integrations import live_session
from context_builder.integrations.live_session import LiveSession, Outgoing, known_beside
from context_builder.session.client import JsonObject
from context_builder.session.config import SessionConfig
from context_builder.transcript.repeats import RestatedSpeech, words

try:
    from pipecat.frames.frames import (
        BotStartedSpeakingFrame,
        BotStoppedSpeakingFrame,
        Frame,
        InterruptionFrame,
        LLMContextAssistantTurnFrame,
        LLMContextFrame,
        LLMUpdateSettingsFrame,
        TranscriptionFrame,
        TTSSpeakFrame,
        VADUserStartedSpeakingFrame,
        VADUserStoppedSpeakingFrame,
    )
    from pipecat.processors.aggregators.llm_context import LLMContext, LLMSpecificMessage, standard_message_text
    from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
    from pipecat.services.llm_service import LLMService
    from pipecat.services.settings import LLMSettings
except ModuleNotFoundError as error:
    raise MissingExtra(needs_extra("pipecat", "Pipecat")) from error


class ConversationListener(FrameProcessor):
    """Sends what people and the bot say to the session, in the background and in order; stands after the transcriber.

    A speaker is the transcription's user id, or what ``names`` calls it. The bot speaks as ``agent``, by default as the
    assistant; of a turn that is interrupted, what was spoken is kept, with a dash after it. The event ``on_silence``
    comes when nobody, the bot included, has spoken for ``silence`` seconds by the frames of voice activity, once in
    each silence, with these seconds. Every frame is passed on.
    """

    def __init__(
        self,
        live: LiveSession,
        *,
        names: Mapping[str, str] | None = None,
        agent: str | None = None,
        silence: float = SessionConfig().silence,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._outgoing = Outgoing(live)
        self._names = dict(names or {})
        self._agent = agent
        self._was_interrupted = False
        self._seconds = silence
        self._speaking: set[type[Frame]] = set()
        self._silence: asyncio.Task[None] | None = None
        self._restated = RestatedSpeech()
        self._scripted: list[str] = []
        self._answer = ""
        self._register_event_handler("on_silence")

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case TranscriptionFrame():
                self._say_scripted()
                speaker = self._names.get(frame.user_id, frame.user_id)
                text = self._restated.unsaid(frame.user_id, frame.text or "")
                self._outgoing.hear(speaker, text, _time(frame.timestamp))
                self._answer = ""
            case TTSSpeakFrame():
                self._scripted.append(frame.text or "")
            case LLMContextAssistantTurnFrame():
                self._answered(frame.text or "")
            case InterruptionFrame():
                self._was_interrupted = self._was_interrupted or BotStartedSpeakingFrame in self._speaking
            case VADUserStartedSpeakingFrame() | BotStartedSpeakingFrame():
                self._was_interrupted = self._was_interrupted and not isinstance(frame, BotStartedSpeakingFrame)
                self._speaking.add(type(frame))
                await self._stop_waiting()
            case VADUserStoppedSpeakingFrame():
                self._speaking.discard(VADUserStartedSpeakingFrame)
                await self._wait(frame.stop_secs)  # for so long it has been silent already
            case BotStoppedSpeakingFrame():
                self._speaking.discard(BotStartedSpeakingFrame)
                await self._wait(0.0)
        await self.push_frame(frame, direction)

    def _answered(self, text: str) -> None:
        """Say a turn of the bot, in which what it was told to speak may be, as far as it was spoken."""
        told, was_interrupted = words(text), self._was_interrupted
        self._was_interrupted = False
        if told and told == words(self._answer):  # of what was said already
            return
        spoken = " ".join(told)
        self._scripted = [one for one in self._scripted if not _begins_in(words(one), spoken)]
        self._say_scripted()
        self._outgoing.answer(text, agent=self._agent, interrupted=was_interrupted)

    def _say_scripted(self) -> None:
        """Say what the bot was told to speak, such as a greeting, which the model's context does not get."""
        for text in self._scripted:
            self._outgoing.answer(text, agent=self._agent)
            self._answer = f"{self._answer} {text}".strip()
        self._scripted = []

    async def cleanup(self) -> None:
        self._say_scripted()
        await self._stop_waiting()
        await self._outgoing.close()
        await super().cleanup()

    async def _wait(self, silent_for: float) -> None:
        await self._stop_waiting()
        if not self._speaking:
            self._silence = self.create_task(self._tell_silence(max(self._seconds - silent_for, 0.0)), "silence")

    async def _stop_waiting(self) -> None:
        if self._silence is not None:
            task, self._silence = self._silence, None
            await self.cancel_task(task)

    async def _tell_silence(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._silence = None
        await self._call_event_handler("on_silence", self._seconds)


class ConversationRecord(FrameProcessor):
    """Gives the model the conversation's record with each context, before the question; stands before the model.

    With ``instructions``, the model's service is told these as its ``system_instruction``, followed by those of the
    context's first message, where that has the role ``system``, and by what the record knows beside the talk. Otherwise
    that is part of the context's first message, where that has the role ``system``, or a ``developer`` message, which
    models of Anthropic, Google and others get as said by the user.

    Where the service behind has instructions of its own, it keeps them, and the context's ``system`` message becomes a
    ``developer`` message: many services leave out the context's where they have both.

    The aggregators' own context stays as it is. Without Redis the frame is passed on as it came, and the log says so.
    """

    def __init__(self, live: LiveSession, *, instructions: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._live = live
        self._instructions = instructions
        self._told_instructions: str | None = None

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame) and direction is FrameDirection.DOWNSTREAM:
            frame = LLMContextFrame(await self._with_record(frame.context), frame.speculation)
        await self.push_frame(frame, direction)

    async def _with_record(self, context: LLMContext) -> LLMContext:
        if self._instructions is None:
            kept = await with_record(self._live, context)
            return _without_system_message(kept) if _has_own_instructions(self) else kept
        together = await _merged(self._live, context)
        beside, talk = known_beside(together, context.get_messages(), _role_and_text)
        parts = [self._instructions]
        if talk and _role_and_text(talk[0])[0] == "system":
            parts.append(_role_and_text(talk.pop(0))[1])
        told = "\n\n".join(filter(None, [*parts, beside]))
        if told != self._told_instructions:
            await self.push_frame(LLMUpdateSettingsFrame(delta=LLMSettings(system_instruction=told)))
            self._told_instructions = told
        return LLMContext(talk, context.tools, context.tool_choice)


async def with_record(live: LiveSession, context: LLMContext) -> LLMContext:
    """Return a context of the same tools, with the conversation's record merged into its messages.

    What the record knows beside the talk is part of the first message, where that has the role ``system``.
    """
    together = await _merged(live, context)
    beside, others = known_beside(together, context.get_messages(), _role_and_text)
    first = others[0] if others else None
    if beside and isinstance(first, dict) and first.get("role") == "system":
        together = [_followed_by(first, beside), *others[1:]]
    return LLMContext(together, context.tools, context.tool_choice)


async def _merged(live: LiveSession, context: LLMContext) -> list[Any]:
    return await live_session.with_record(live, context.get_messages(), _role_and_text, _message, _said_as)


def _has_own_instructions(processor: FrameProcessor) -> bool:
    """Return whether a model's service behind the processor has instructions, given to it or composed by it."""
    services = (one for one in _behind(processor.next) if isinstance(one, LLMService))
    return any(isinstance(told := one.settings.system_instruction, str) and told for one in services)


def _behind(processor: FrameProcessor | None) -> Iterator[FrameProcessor]:
    """Yield the processor, those inside it, and all behind it in its pipeline."""
    while processor is not None:
        yield processor
        for inner in processor.entry_processors:
            yield from _behind(inner)
        processor = processor.next


def _without_system_message(context: LLMContext) -> LLMContext:
    messages = context.get_messages()
    if messages and _role_and_text(messages[0])[0] == "system":
        messages = [{**messages[0], "role": "developer"}, *messages[1:]]
    return LLMContext(messages, context.tools, context.tool_choice)


def _followed_by(message: Mapping[str, Any], text: str) -> Any:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": f"{content}\n\n{text}"}
    return {**message, "content": [*(content or []), {"type": "text", "text": f"\n\n{text}"}]}


def _role_and_text(message: Any) -> tuple[str, str]:
    if isinstance(message, LLMSpecificMessage) or message.get("tool_calls"):
        return "", standard_message_text(message)
    role = str(message.get("role") or "")
    return role, standard_message_text(message)


def _message(one: JsonObject) -> Any:
    """Return a message of the record; ``developer`` is what no service of Pipecat takes for its system instruction."""
    return {"role": "developer" if one["role"] == "system" else one["role"], "content": one["content"]}


def _said_as(message: Any, text: str) -> Any:
    content = message.get("content")
    if not isinstance(content, list):
        return {**message, "content": text}
    others = [part for part in content if not (isinstance(part, Mapping) and part.get("type") == "text")]
    return {**message, "content": [{"type": "text", "text": text}, *others]}


def _begins_in(script: list[str], spoken: str) -> bool:
    """Return whether a turn holds what was to be spoken, or its beginning, where it was cut off."""
    return f" {' '.join(script)} " in f" {spoken} " or (bool(spoken) and " ".join(script).startswith(spoken))


def _time(timestamp: object) -> datetime | None:
    """Return when it was said; None where the transcriber does not tell."""
    return moment(timestamp) if isinstance(timestamp, str) else None
