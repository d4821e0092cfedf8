"""A Pipecat pipeline that takes part in a conversation; give it your transport and services.

Needs `pip install '.[embedded,pipecat]'` in the checkout and a session that runs: `context-builder run monday`.
"""

from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor

from context_builder.integrations.live_session import LiveSession
from context_builder.integrations.pipecat import ConversationListener, ConversationRecord

INSTRUCTIONS = "You take part in a research group's meeting. Answer in one sentence."


def bot(live: LiveSession, hears: list[FrameProcessor], llm: FrameProcessor, speaks: list[FrameProcessor]) -> Pipeline:
    """Return the pipeline; ``hears`` are your transport's input and transcriber, ``speaks`` voice and output."""
    listener = ConversationListener(live, names={"user-1": "Ida"})
    aggregators = LLMContextAggregatorPair(LLMContext())
    record = ConversationRecord(live, instructions=INSTRUCTIONS)

    @listener.event_handler("on_silence")
    async def on_silence(_: ConversationListener, seconds: float) -> None:
        print(f"nobody has spoken for {seconds:g} s")  # a moment for what the assistant has to say

    return Pipeline([*hears, listener, aggregators.user(), record, llm, *speaks, aggregators.assistant()])
