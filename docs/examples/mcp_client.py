"""An MCP client that reads a conversation by `context-builder mcp`: python mcp_client.py monday

Needs `pip install '.[embedded,server]'` in the checkout and a session that runs: `context-builder run monday`.
"""

import asyncio
import os
import sys

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def summary(session_id: str) -> str:
    """Ask for a session's state, and return its newest message and its topics."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "context_builder", "mcp"], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        told = await client.call_tool("session_state", {"sessionId": session_id})
        if told.is_error:
            return str(told.content[0].model_dump()["text"])
        state = told.structured_content or {}
        said = [f"{one['speaker']}: {one['text']}" for one in state["raw_recent_buffer"]] or ["nothing new"]
        return f"{said[-1]} ({', '.join(state['current_domains']) or 'no topic yet'})"


if __name__ == "__main__":
    print(asyncio.run(summary(sys.argv[1] if len(sys.argv) > 1 else "monday")))
