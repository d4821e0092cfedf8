"""An agent of the OpenAI Agents SDK that takes part in a conversation: python openai_agents.py "What did we decide?"

Needs `pip install '.[embedded,openai-agents]'` in the checkout, OPENAI_API_KEY, and a session that runs:
`context-builder run monday`.
"""

import asyncio
import os
import sys

from agents import Agent, RunConfig, Runner
from agents.models.interface import Model
from openai import OpenAIError

from context_builder.errors import ContextBuilderError
from context_builder.integrations.live_session import open_live_session
from context_builder.integrations.openai_agents import ConversationSession

INSTRUCTIONS = "You take part in a research group's meeting. Answer in one sentence."


async def answer(question: str, model: str | Model | None = None) -> str:
    """Ask the agent in the conversation, and return what it says."""
    async with open_live_session("monday", max_prompt_tokens=2000) as live:
        session = ConversationSession(live, speaker="Ida")
        agent = Agent(name="Assistant", instructions=INSTRUCTIONS, model=model)
        with_record = RunConfig(call_model_input_filter=session.with_record)
        result = await Runner.run(agent, question, session=session, run_config=with_record)
        return str(result.final_output)


if __name__ == "__main__":
    if "OPENAI_API_KEY" not in os.environ:
        sys.exit("set OPENAI_API_KEY in the environment, where the SDK looks for it")
    try:
        print(asyncio.run(answer(" ".join(sys.argv[1:]) or "What did we decide?")))
    except (ContextBuilderError, OpenAIError) as error:
        sys.exit(str(error))
