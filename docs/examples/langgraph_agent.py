"""A LangGraph graph that answers from a conversation and keeps what it learns: python langgraph_agent.py "Who counts?"

Needs `pip install '.[embedded,langchain]'` in the checkout and a session that runs: `context-builder run monday`.
"""

import asyncio
import sys

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import MessagesState, StateGraph
from langgraph.store.base import BaseStore

from context_builder import ContextBuilderError, load_settings, open_memory
from context_builder.integrations.langchain import ConversationHistory, MemoryItems, MemoryRetriever, with_record
from context_builder.integrations.live_session import open_live_session


async def answer(question: str) -> str:
    """Ask the graph, and return its answer; put a chat model in the place of the last line of ``reply``."""
    async with open_live_session("monday") as live, open_memory(load_settings()) as (memory, _):
        history = ConversationHistory(live, speaker="Ida")

        async def reply(state: MessagesState, *, store: BaseStore) -> MessagesState:
            found = await MemoryRetriever(memory=memory).ainvoke(str(state["messages"][-1].text))
            await store.aput(("questions",), "last", {"text": question})
            said = await with_record(live, state["messages"], speaker="Ida")
            return {"messages": [AIMessage(f"messages: {len(said)}, memories: {len(found)}")]}

        graph = StateGraph(MessagesState).add_node(reply).set_entry_point("reply").compile(store=MemoryItems(memory))
        done = await graph.ainvoke({"messages": [HumanMessage(question)]})
        await history.aadd_messages(done["messages"])
        return str(done["messages"][-1].text)


if __name__ == "__main__":
    try:
        print(asyncio.run(answer(" ".join(sys.argv[1:]) or "Who counts?")))
    except ContextBuilderError as error:
        sys.exit(str(error))
