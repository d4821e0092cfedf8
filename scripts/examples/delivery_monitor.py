"""A delivery monitor says what the assistant has prepared, once nobody speaks.

It reads the silence clock twice a second. What orchestrator.py prepared and the talk has left meanwhile is not said.
What is said goes into the session, like everything else that is said there. It ends with the session.
Run as: python scripts/examples/delivery_monitor.py SESSION
"""

import json
import os
import sys
import time
from datetime import datetime
from typing import Any

import redis

RELEVANT = 90.0  # seconds, after which the talk has gone on, whatever it is about

url = os.environ.get("REDIS_URL")
port, password = int(os.environ.get("REDIS_PORT", "6379")), os.environ.get("REDIS_PASSWORD")
client: Any = redis.Redis.from_url(url) if url else redis.Redis("localhost", port, password=password)


def best(ideas: dict[bytes, dict[str, Any]], conversation: dict[str, Any]) -> bytes | None:
    """The most urgent of what still fits the talk, and of equals the newest; a request by name always fits."""
    about = set(conversation["current_keywords"])  # which ends in the names of the active domains
    urgency = {
        raw: (idea["metadata"]["priority"], -idea["prepared_at"])
        for raw, idea in ideas.items()
        if time.time() - idea["prepared_at"] < RELEVANT
        and (idea["metadata"]["priority"] == "P0" or about & {*idea["keywords"]})
    }
    return min(urgency, key=lambda raw: urgency[raw], default=None)


def say(session_id: str, idea: dict[str, Any]) -> None:
    """Say it: here to whoever reads the terminal, elsewhere to a voice; and let the session hear it."""
    print(f"Consilience: {idea['text']}", flush=True)
    message = {
        "message_number": int(time.time() * 1000),
        "speaker": "Consilience",
        "type": "consilience",
        "text": idea["text"],
        "timestamp": datetime.now().astimezone().isoformat(),
        "metadata": idea["metadata"],
    }
    client.lpush(f"context_builder:{session_id}:input", json.dumps(message))


def main(session_id: str) -> None:
    print(f"waiting for silences in {session_id}; Ctrl-C stops", flush=True)
    waiting, began, spoke_after = f"delivery:{session_id}:waiting", False, None
    while (raw := client.get(f"conversation_state:{session_id}")) or not began:
        if raw:
            began, conversation = True, json.loads(raw)
            silence = conversation["last_message_time"]  # tells this silence from the next
            if conversation["silence"] and silence != spoke_after:
                ideas = {one: json.loads(one) for one in client.lrange(waiting, 0, -1)}
                if (chosen := best(ideas, conversation)) and client.lrem(waiting, 1, chosen):
                    say(session_id, ideas[chosen])
                    spoke_after = silence
        time.sleep(0.5)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except redis.RedisError as error:
        sys.exit(f'Redis: {error}. Try eval "$(context-builder engines env)", or set REDIS_URL')
