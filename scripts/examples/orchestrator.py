"""An orchestrator reads a session's state twice a second and prepares what the assistant could say.

It never speaks. What it prepares waits in a Redis list until delivery_monitor.py finds a silence for it; it ends with
the session. With OPENAI_API_KEY or OPENAI_BASE_URL a model finds the words (ORCHESTRATOR_MODEL), else the summary has
them. Run as: python scripts/examples/orchestrator.py SESSION
"""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

RELATED = 10  # letters of words in common, from which a point has to do with a text
NOTES = {"decision": ("P1", "I note as decided: {} Tell me if that is wrong."), "action": ("P2", "I note a task: {}")}

url = os.environ.get("REDIS_URL")
port, password = int(os.environ.get("REDIS_PORT", "6379")), os.environ.get("REDIS_PASSWORD")
client: Any = redis.Redis.from_url(url) if url else redis.Redis("localhost", port, password=password)


def read(key: str) -> dict[str, Any] | None:
    value = client.get(key)
    return json.loads(value) if value else None


def ideas(state: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """What calls for a word: why, how urgently, what about, and what to say without a model."""
    points = [point for point in state["rolling_summary"].get("points", []) if point["kind"] != "consilience"]
    for message in state["raw_recent_buffer"]:
        if message["type"] != "consilience" and "consilience" in message["text"].lower():  # we are asked by name
            asked = f"{message['speaker']} asks: {message['text']}"
            yield "explicit_request", "P0", asked, answer(points, message["text"])
    for point in points:
        if point["kind"] in NOTES:
            priority, note = NOTES[point["kind"]]
            yield point["kind"], priority, quoted(point), note.format(quoted(point))


def answer(points: list[dict[str, Any]], question: str) -> str:
    """The point that shares most with the question, long words weighing more; of decisions, where one is asked for."""
    among = [one for one in points if one["kind"] == "decision" or not re.search("deci[ds]", question)]
    shared = {quoted(point): sum(map(len, words(question) & words(point["text"]))) for point in among}
    best = max(shared, key=lambda said: shared[said], default="")
    return f"My notes say: {best}" if shared.get(best, 0) >= RELATED else "I have nothing about that in my notes."


def words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"\w{4,}", text.lower())}


def quoted(point: dict[str, Any]) -> str:
    return f"“{point['text']}” ({', '.join(point['speakers'])})"


def worded(state: dict[str, Any], matter: str, plain: str) -> str:
    """What to say, in a model's words where there is a model."""
    if not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")):
        return plain
    from openai import OpenAI

    recent = [f"{message['speaker']}: {message['text']}" for message in state["raw_recent_buffer"][-10:]]
    record = "\n".join([state["rolling_summary"]["text"], *recent])
    prompt = (
        Path(__file__).with_suffix(".md").read_text("utf-8").replace("{matter}", matter).replace("{record}", record)
    )
    model = OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"), timeout=20)
    name = os.environ.get("ORCHESTRATOR_MODEL", "gpt-4o-mini")
    answer = model.chat.completions.create(model=name, messages=[{"role": "user", "content": prompt}], max_tokens=100)
    return answer.choices[0].message.content or plain


def main(session_id: str) -> None:
    print(f"reading what is said in {session_id}; Ctrl-C stops", flush=True)
    prepared: set[str] = set()
    began, waiting = False, f"delivery:{session_id}:waiting"
    while (alive := read(f"conversation_state:{session_id}")) or not began:  # it expires soon after the session ends
        began = began or alive is not None
        state = read(f"context_builder:{session_id}:state") if alive else None
        for trigger, priority, matter, plain in ideas(state) if state else ():
            said = {one["metadata"].get("issue_description") for one in state["consilience_responses"]}
            if matter not in prepared | said:
                prepared.add(matter)
                text, about = worded(state, matter, plain), [*state["current_keywords"], *state["current_domains"]]
                metadata = {"trigger_type": trigger, "priority": priority, "issue_description": matter}
                idea = {"text": text, "keywords": about, "metadata": metadata, "prepared_at": time.time()}
                client.lpush(waiting, json.dumps(idea))
                client.expire(waiting, 600)
                print(f"prepared ({priority}, {trigger}): {text}", flush=True)
        time.sleep(0.5)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except redis.RedisError as error:
        sys.exit(f'Redis: {error}. Try eval "$(context-builder engines env)", or set REDIS_URL')
