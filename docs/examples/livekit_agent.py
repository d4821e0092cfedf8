"""A LiveKit agent that takes part in a conversation: python livekit_agent.py console

Needs `pip install '.[embedded,livekit]'` in the checkout, the plugins of your models, and a session that runs:
`context-builder run monday`. In a room, LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET say where that is.
"""

from contextlib import AsyncExitStack

from livekit.agents import AgentServer, AgentSession, JobContext, cli

from context_builder.integrations.live_session import LiveSession, open_live_session
from context_builder.integrations.livekit import ConversationAgent, ConversationFeed

INSTRUCTIONS = "You take part in a research group's meeting. Answer in one sentence."
server = AgentServer()


def joined(live: LiveSession, session: AgentSession) -> tuple[ConversationAgent, ConversationFeed]:
    """Return an agent that knows the conversation, and what says in it what the session hears."""
    feed = ConversationFeed(live, names={"": "Ida"})  # in the console; in a room, by identity: {"ida-1": "Ida"}
    feed.follow(session)
    return ConversationAgent(live, instructions=INSTRUCTIONS), feed


@server.rtc_session()
async def meeting(job: JobContext) -> None:
    stack = AsyncExitStack()
    job.add_shutdown_callback(stack.aclose)
    live = await stack.enter_async_context(open_live_session("monday", max_prompt_tokens=2000))
    session = AgentSession(stt="deepgram/nova-3", llm="openai/gpt-4o-mini", tts="cartesia/sonic-3")
    agent, feed = joined(live, session)
    stack.push_async_callback(feed.close)
    await session.start(agent, room=job.room)


if __name__ == "__main__":
    cli.run_app(server)
