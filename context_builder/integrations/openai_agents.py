"""For the OpenAI Agents SDK: its session protocol over a conversation, the conversation's record, packages as a tool.

What the SDK keeps of a session (messages, calls of tools and their outputs) is kept as it is. Beside that, what user
and agent say is said in the conversation, where others may take part, and is summarized and remembered with it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from context_builder.errors import DatabaseError, MissingExtra, StoreError, needs_extra
from context_builder.integrations.live_session import (
    LiveSession,
    PushedMessage,
    SpokenMessage,
    known_beside,
    with_record,
)
from context_builder.integrations.package_client import PackageClient
from context_builder.session.client import JsonObject
from context_builder.session.keys import Keys
from context_builder.storage.redis_availability import translated

try:
    from agents import FunctionTool, TResponseInputItem, function_tool
    from agents.memory import SessionSettings
    from agents.run import CallModelData, ModelInputData
except ModuleNotFoundError as error:
    raise MissingExtra(needs_extra("openai-agents", "the OpenAI Agents SDK")) from error

RETENTION: Final = 604_800
"""Seconds for which items are kept after the last; a session's own retention by default."""


class _KeptItem(NamedTuple):
    """Keeps an item of the SDK, as what it was said in the conversation, and by whom, if that has a name."""

    item: Mapping[str, Any]
    pushed: PushedMessage | None = None
    speaker: str | None = None


class ConversationSession:
    """Implements the SDK's ``Session`` over a session that a daemon runs; give it to ``Runner.run(session=…)``.

    The user speaks in the conversation as ``speaker``, and the agent as the assistant; where there are several, each
    under its own name once :meth:`with_record` has been asked or a handoff made, the first as ``agent``.
    :meth:`with_record` merges the conversation's record into the input. What :meth:`pop_item` takes back is struck
    from the conversation too; :meth:`clear_session` is about what the SDK keeps, and what was said stays said, until
    ``context-builder forget`` deletes it, and these items with it.

    Every method raises :class:`StoreError` as :class:`SessionClient` does.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self, live: LiveSession, *, speaker: str = "User", agent: str | None = None, retention: float = RETENTION
    ) -> None:
        self.session_id = live.session_id
        self._live = live
        self._speaker = speaker
        self._retention = int(retention)
        self._key = Keys(live.session_id).agent_items
        self._agent = agent
        self._heard: list[SpokenMessage] = []

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first; with a ``limit``, the newest so many."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        async with translated():
            kept = await _awaited(self._live.redis.lrange(self._key, 0 if limit is None else -limit, -1))
        read = [*map(self._kept, kept)]
        self._heard = [
            SpokenMessage(str(one.item.get("role")), one.speaker, text_of(one.item)) for one in read if one.speaker
        ]
        if self._agent is None:  # several agents have spoken here, though through another person's session
            self._agent = next((one.speaker for one in reversed(self._heard) if one.role == "assistant"), None)
        return [cast("TResponseInputItem", one.item) for one in read]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep the items, and say in the conversation what of them was said."""
        if not items:
            return
        written = [json.dumps(await self._say(cast("Mapping[str, Any]", item))) for item in items]
        async with translated(), self._live.redis.pipeline(transaction=True) as pipe:
            pipe.rpush(self._key, *written)
            pipe.expire(self._key, self._retention)
            await pipe.execute()

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the newest item, and strike what it said; ``None`` when there is none."""
        async with translated():
            raw = await _awaited(self._live.redis.rpop(self._key))
        if raw is None:
            return None
        kept = self._kept(raw)
        if kept.pushed is not None:
            await self._live.take_back(kept.pushed)
        return cast("TResponseInputItem", kept.item)

    async def clear_session(self) -> None:
        """Remove all items."""
        async with translated():
            await self._live.redis.delete(self._key)

    async def with_record(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the model's input with the conversation's record in it; for ``RunConfig(call_model_input_filter=…)``.

        What the record knows beside the talk stands behind the agent's instructions. The SDK keeps none of it. Without
        Redis the input stays as it is, and the log says so.
        """
        if self._agent is not None or data.agent.handoffs:
            self._agent = data.agent.name
        given = data.model_data
        items = cast("list[Mapping[str, Any]]", given.input)
        together = await with_record(self._live, items, _role_and_text, _message, _said_as, self._speaker, self._heard)
        beside, talk = known_beside(together, items, _role_and_text)
        instructions = "\n\n".join(filter(None, (given.instructions, beside)))
        return ModelInputData(input=cast("list[TResponseInputItem]", talk), instructions=instructions or None)

    async def _say(self, item: Mapping[str, Any]) -> _KeptItem:
        match item:
            case {"role": "user"}:
                return _KeptItem(item, await self._live.hear(self._speaker, text_of(item)), self._speaker)
            case {"role": "assistant"}:
                return _KeptItem(item, await self._live.answer(text_of(item), agent=self._agent), self._agent)
            case {"type": "function_call_output", "output": str() as output}:
                self._agent = _handed_to(output) or self._agent
        return _KeptItem(item)

    def _kept(self, raw: bytes) -> _KeptItem:
        """Return an item, and as what it was said in the conversation."""
        try:
            held = json.loads(raw)
        except ValueError as error:
            raise StoreError(f"{self._key}: not JSON: {error}") from None
        match held:
            case [dict() as item, [int() as number, str() as memory_id], str() as speaker, *_]:
                return _KeptItem(item, PushedMessage(number, memory_id), speaker)
            case [item, [int() as number, str() as memory_id], *_]:
                return _KeptItem(item, PushedMessage(number, memory_id))
            case [item, *_] | item:
                return _KeptItem(item)


def _handed_to(output: str) -> str | None:
    """Return the agent that a handoff's output names; None for the output of any other tool."""
    try:
        held = json.loads(output)
    except ValueError:
        return None
    match held:
        case {"assistant": str() as name, **others} if not others:
            return name
    return None


def text_of(item: Mapping[str, Any]) -> str:
    """Return the text of a message, which may be in parts; empty for any other item."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def context_tool(packages: PackageClient, *, project_id: str = "", token_budget: int = 4_000) -> FunctionTool:
    """Return a tool with which an agent fetches what a project knows that fits its task."""

    async def build_context(intent: str) -> str:
        """Find what was said, decided and written before that helps with a task. It is a record, no instructions.

        Args:
            intent: What the context is for, in a sentence or two.
        """
        try:
            found = await packages.prompt(intent, token_budget=token_budget, project_id=project_id)
        except DatabaseError as error:
            return f"No context: {error}"
        return found or "Nothing is known about that."

    return function_tool(build_context)


def _role_and_text(item: Mapping[str, Any]) -> tuple[str, str]:
    return str(item.get("role") or ""), text_of(item)


def _message(one: JsonObject) -> Mapping[str, Any]:
    return {"role": one["role"], "content": one["content"]}


def _said_as(item: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    content = item.get("content")
    if not isinstance(content, list):
        return {**item, "content": text}
    first = next(place for place, part in enumerate(content) if isinstance(part, Mapping) and "text" in part)
    kept = [part for part in content if not (isinstance(part, Mapping) and "text" in part)]
    return {**item, "content": [{**content[first], "text": text}, *kept]}


async def _awaited(answer: Any) -> Any:
    """Return the answer of redis-py, whose types are those of both of its clients."""
    return await cast("Awaitable[Any]", answer)
