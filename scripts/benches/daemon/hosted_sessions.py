"""The memory of many sessions in one process: ``python -m scripts.benches.daemon.hosted_sessions COUNT MESSAGES``.

Every session takes in some messages and has them understood; then RSS and USS are printed in bytes, as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys

import psutil

from context_builder import log
from context_builder.session.session import Session
from context_builder.settings.settings import load_settings
from context_builder.wiring.app import open_app
from scripts.benches.daemon.observer import Observer


def is_understood(session: Session, messages: int) -> bool:
    conversation = session.conversation
    entries = conversation.buffer.entries.values()
    return conversation.received == messages and not any(entry.needs_keywords for entry in entries)


async def host(count: int, messages: int) -> None:
    settings = load_settings()
    log.configure("error", "json")
    async with open_app(settings) as app, asyncio.TaskGroup() as tasks:
        sessions = [app.session(f"hosted-{count}-{number}") for number in range(count)]
        for session in sessions:
            tasks.create_task(session.serve())
        for session in sessions:
            await session.ready.wait()
        assert settings.redis.url is not None
        with Observer(settings.redis.url.get_secret_value(), sessions[0].session_id) as speaking:
            deliveries = [speaking.delivery() for _ in range(messages)]
        for session in sessions:
            await app.redis.lpush(f"context_builder:{session.session_id}:input", *deliveries)
        while not all(is_understood(session, messages) for session in sessions):  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.1)
        gc.collect()
        memory = psutil.Process().memory_full_info()
        print(json.dumps({"rss": memory.rss, "uss": memory.uss}))
        for session in sessions:
            session.stop()


if __name__ == "__main__":
    asyncio.run(host(int(sys.argv[1]), int(sys.argv[2])))
