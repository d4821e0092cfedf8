"""What Pipecat does with a conversation, told as JSON by a program: Pipecat has an environment of its own.

Run by ``test_pipecat.py`` as ``python pipecat_story.py REDIS_URL``, while the session ``monday`` runs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from functools import partialmethod
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    InterimTranscriptionFrame,
    InterruptionFrame,
    LLMContextAssistantTurnFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    LLMUpdateSettingsFrame,
    TranscriptionFrame,
    TTSSpeakFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.parallel_pipeline import ParallelPipeline
from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import LLMService
from pipecat.services.settings import LLMSettings
from pipecat.tests.utils import SleepFrame, run_test

from context_builder import ContextBuilder
from context_builder.assembly.config import AssemblyConfig
from context_builder.integrations.live_session import LiveSession, Outgoing
from context_builder.integrations.pipecat import ConversationListener, ConversationRecord, with_record
from context_builder.memory.memory import Memory
from context_builder.storage.redis import client_for
from context_builder.testing import InMemoryStore
from tests.services.waiting import PATIENCE

EXAMPLE = Path(__file__).parents[2] / "docs/examples/pipecat_bot.py"
AT = "2026-11-23T10:00:00+00:00"
TOOL_CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function"}]}


class ScriptedLLM(FrameProcessor):
    """Always says how deep it is, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[Any]] = []
        self.instructions: list[Any] = []

    async def process_frame(self, frame: Any, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMUpdateSettingsFrame) and frame.delta:
            self.instructions.append(frame.delta.system_instruction)
        elif isinstance(frame, LLMContextFrame) and direction is FrameDirection.DOWNSTREAM:
            self.asked.append(list(frame.context.get_messages()))
            await self.push_frame(LLMFullResponseStartFrame())
            await self.push_frame(LLMTextFrame("Forty metres."))
            await self.push_frame(LLMFullResponseEndFrame())
        else:
            await self.push_frame(frame, direction)


async def transcriptions(live: LiveSession) -> dict[str, Any]:
    """Odd and many transcriptions, and what the bot says."""
    frames: list[Any] = [
        TranscriptionFrame("We count.", "user-1", AT),
        TranscriptionFrame("We stop. 🐳", "user-2", "no time"),
        InterimTranscriptionFrame("We st", "user-2", AT),
        TranscriptionFrame("", "user-1", AT),
        TranscriptionFrame("Who is this?", "", AT),
        *(TranscriptionFrame(f"Clip {place}", "user-3", AT) for place in range(500)),
        LLMContextAssistantTurnFrame("Good.", AT),
    ]
    listener = ConversationListener(live, names={"user-1": "Ida"})
    down, _ = await run_test(listener, frames_to_send=frames)
    return {"passed_on": len(down), "sent": len(frames)}


async def restated(live: LiveSession) -> dict[str, Any]:
    """Transcribers that say again what was final, and a greeting that no model made."""
    frames: list[Any] = [
        TTSSpeakFrame("Welcome to the harbour."),
        LLMContextAssistantTurnFrame("Welcome to the harbour.", AT),
        TTSSpeakFrame("This call is recorded.", append_to_context=False),
        TranscriptionFrame("my order number", "user-4", AT),
        TranscriptionFrame("is four two one.", "user-4", AT),
        TranscriptionFrame("My order number is four two one.", "user-4", AT),
        TranscriptionFrame("My order number is four two one. The small ones.", "user-4", AT),
        TTSSpeakFrame("One moment, please."),
        LLMContextAssistantTurnFrame("One moment,", AT),
        TTSSpeakFrame("Goodbye."),
    ]
    down, _ = await run_test(ConversationListener(live), frames_to_send=frames)
    return {"passed_on": len(down), "sent": len(frames)}


async def interrupted(live: LiveSession) -> dict[str, Any]:
    """A bot with a name, which somebody interrupts once."""
    frames: list[Any] = [
        InterruptionFrame(),
        BotStartedSpeakingFrame(),
        LLMContextAssistantTurnFrame("It is deep.", AT),
        SleepFrame(1.0),  # an interruption overtakes what waits
        InterruptionFrame(),
        BotStoppedSpeakingFrame(),
        SleepFrame(1.0),
        LLMContextAssistantTurnFrame("They", AT),
    ]
    await run_test(ConversationListener(live, agent="Law expert"), frames_to_send=frames)
    return {}


async def realtime(live: LiveSession) -> dict[str, Any]:
    """A model that transcribes itself is heard behind the user aggregator."""
    frames = [TranscriptionFrame("From quay four.", "", AT), SleepFrame(1.0)]
    listener = ConversationListener(live, names={"": "Ann"})
    await run_test(listener, frames_to_send=frames, frames_to_send_direction=FrameDirection.UPSTREAM)
    return {}


async def silence(live: LiveSession) -> dict[str, Any]:
    """Nobody speaks, then somebody, then the bot beside somebody."""
    told: list[float] = []
    listener = ConversationListener(live, silence=0.3)

    @listener.event_handler("on_silence")
    async def on_silence(_: ConversationListener, seconds: float) -> None:
        told.append(seconds)

    counts = []
    for frames in (
        [VADUserStartedSpeakingFrame(), SleepFrame(0.6)],
        [VADUserStartedSpeakingFrame(), VADUserStoppedSpeakingFrame(stop_secs=0.1), SleepFrame(2.0)],
        [BotStartedSpeakingFrame(), VADUserStartedSpeakingFrame(), VADUserStoppedSpeakingFrame(), SleepFrame(0.6)],
        [BotStartedSpeakingFrame(), BotStoppedSpeakingFrame(), SleepFrame(2.0)],
    ):
        await run_test(listener, frames_to_send=frames)
        counts.append(len(told))
        listener = ConversationListener(live, silence=0.3)
        listener.add_event_handler("on_silence", on_silence)
    return {"told": counts}


async def record(live: LiveSession) -> dict[str, Any]:
    """The model's context gets the record; the aggregators' own stays."""
    context = LLMContext(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How deep is the mooring?"}, TOOL_CALL]
    )
    down, _ = await run_test(ConversationRecord(live), frames_to_send=[LLMContextFrame(context, speculation=True)])
    (frame,) = down
    empty = await with_record(live, LLMContext())
    asking = LLMContext([{"role": "user", "content": "How deep is the mooring?"}])
    told, beside = (
        await run_test(ConversationRecord(live, instructions="Be quick."), frames_to_send=[LLMContextFrame(asking)])
    )[0]
    both, without_system = (
        await run_test(ConversationRecord(live, instructions="Be quick."), frames_to_send=[LLMContextFrame(context)])
    )[0]
    in_parts = LLMContext(
        [{"role": "system", "content": [{"type": "text", "text": "Be kind."}]}, *asking.get_messages()]
    )
    of_parts = await with_record(live, in_parts)
    return {
        "given": frame.context.get_messages(),
        "instructions": told.delta.system_instruction,
        "beside_instructions": beside.context.get_messages(),
        "both_instructions": both.delta.system_instruction,
        "beside_both": without_system.context.get_messages(),
        "of_parts": of_parts.get_messages()[0]["content"],
        "without_instructions": empty.get_messages()[0]["role"],
        "speculation": frame.speculation,
        "kept": len(context.get_messages()),
        "of_nothing": empty.get_messages()[-1],
    }


class InstructedService(LLMService):
    """A model's service with instructions of its own, which passes all frames on."""

    def __init__(self) -> None:
        super().__init__(settings=LLMSettings(model="scripted", system_instruction="Be yourself."))

    async def process_frame(self, frame: Any, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)


async def instructed(live: LiveSession) -> dict[str, Any]:
    """A service keeps its own instructions, wherever it stands, and gets the context's and the record."""
    context = LLMContext(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How deep is the mooring?"}]
    )
    told = {}
    for name, wrapped in (("plain", lambda one: one), ("parallel", lambda one: ParallelPipeline([one]))):
        service = InstructedService()
        pipeline = Pipeline([ConversationRecord(live), wrapped(service)])
        down, _ = await run_test(pipeline, frames_to_send=[LLMContextFrame(context)])
        (frame,) = [one for one in down if isinstance(one, LLMContextFrame)]
        told[name] = {"own": service.settings.system_instruction, "given": frame.context.get_messages()}
    return told


async def example(live: LiveSession) -> dict[str, Any]:
    """The documentation's pipeline answers a question."""
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    assert spec is not None and spec.loader is not None  # noqa: PT018 (for mypy)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    llm = ScriptedLLM()
    frames = [
        VADUserStartedSpeakingFrame(),
        TranscriptionFrame("How are clips labelled?", "user-1", AT),
        VADUserStoppedSpeakingFrame(),
        SleepFrame(6.0),
    ]
    await run_test(module.bot(live, [], llm, []), frames_to_send=frames, start_timeout=30.0)
    return {"asked": llm.asked, "instructions": llm.instructions}


async def main(redis_url: str) -> None:
    store = InMemoryStore()
    await store.remember("default", [Memory("depth", "The mooring is at forty metres", speaker="Ben")])
    patient = patch.object(Outgoing, "close", partialmethod(Outgoing.close, PATIENCE))
    async with client_for(redis_url) as redis:
        live = LiveSession(
            redis,
            "monday",
            ContextBuilder(store=store, config=AssemblyConfig(deadline=PATIENCE)),
            turn={"tenant_id": "default"},
        )
        parts = (record, instructed, example, silence, transcriptions, restated, realtime, interrupted)
        with patient:
            told = {part.__name__: await part(live) for part in parts}
    sys.stdout.write(f"\n{json.dumps(told)}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
