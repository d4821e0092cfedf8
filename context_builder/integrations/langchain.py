"""For LangChain and LangGraph: a conversation as a chat history, a retriever over memory, and memory as a store.

What is asynchronous here runs in the event loop in which the object was made. Called without ``await`` from another
thread, as LangGraph does for a graph that is invoked so, it waits for that loop; from the loop itself it cannot. For
programs without a loop, :func:`open_items` runs one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Thread
from typing import Any, Final, TypeVar

import structlog
from pydantic import PrivateAttr, SkipValidation

from context_builder.errors import ContextBuilderError, MissingExtra, SettingError, needs_extra
from context_builder.integrations import live_session
from context_builder.integrations.live_session import LiveSession
from context_builder.knowledge.store import SEPARATOR
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, MemoryStore, SearchResult
from context_builder.quoting import quoted_message
from context_builder.session.client import JsonObject
from context_builder.settings.settings import Settings, load_settings
from context_builder.wiring.stores import open_memory

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
    from langchain_core.retrievers import BaseRetriever
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )
    from langgraph.store.memory import InMemoryStore
except ModuleNotFoundError as error:
    raise MissingExtra(needs_extra("langchain", "the adapters for LangChain and LangGraph")) from error

log = structlog.get_logger(__name__)

MOST: Final = 1_000
"""Newest items that a search with a filter on their values looks through."""

MOST_LISTED: Final = 10_000
"""Newest items whose namespaces are listed."""

_KIND: Final = "item"
_MESSAGES: Final = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
_ROLES: Final = {"system": "system", "human": "user", "ai": "assistant"}

T = TypeVar("T")


class ConversationHistory(BaseChatMessageHistory):
    """Shows a session as LangChain's history: its summary, memories and newest messages, within the token budget.

    What is added is said in the session, by ``speaker`` or the assistant, or under the message's own name. Results
    of tools are nothing that anybody said. Raises :class:`StoreError` as :class:`SessionClient` does.
    """

    def __init__(self, live: LiveSession, *, speaker: str = "User") -> None:
        super().__init__()
        self._live = live
        self._speaker = speaker
        self._loop = _own_loop()

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Return :meth:`aget_messages`, from another thread than the loop's."""
        return _from_thread(self._loop, self.aget_messages())

    async def aget_messages(self) -> list[BaseMessage]:
        return [_made(one) for one in await self._live.record()]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        _from_thread(self._loop, self.aadd_messages(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        for message in messages:
            if isinstance(message, HumanMessage):
                await self._live.hear(message.name or self._speaker, str(message.text))
            elif isinstance(message, AIMessage):
                await self._live.answer(str(message.text), agent=message.name)

    def clear(self) -> None:
        """Refuse: what others said in the conversation is not one program's to delete."""
        session_id = self._live.session_id
        raise NotImplementedError(f"a session is deleted everywhere by: context-builder forget {session_id}")

    async def aclear(self) -> None:
        self.clear()


async def with_record(
    live: LiveSession, messages: Sequence[BaseMessage], *, speaker: str | None = None
) -> list[BaseMessage]:
    """Return a graph's messages and the conversation's record as one history, for a model.

    The graph's own messages stay as they are. The newest question begins with its message's own name, or else with
    ``speaker``. The record is missing where it cannot be had, as in :meth:`LiveSession.record_or_nothing`.
    """
    asked = next((one for one in reversed(messages) if isinstance(one, HumanMessage)), None)
    named = (asked.name if asked is not None else None) or speaker
    return await live_session.with_record(live, messages, _role_and_text, _made, _said_as, named)


def _role_and_text(message: BaseMessage) -> tuple[str, str]:
    calls = isinstance(message, AIMessage) and bool(message.tool_calls)
    return "" if calls else _ROLES.get(message.type, ""), str(message.text)


def _made(one: JsonObject) -> BaseMessage:
    message: BaseMessage = _MESSAGES[one["role"]](content=one["content"])
    return message


def _said_as(message: BaseMessage, text: str) -> BaseMessage:
    if isinstance(message.content, str):
        return message.model_copy(update={"content": text})
    others = [part for part in message.content if isinstance(part, dict) and part.get("type") != "text"]
    return message.model_copy(update={"content": [{"type": "text", "text": text}, *others]})


class MemoryRetriever(BaseRetriever):
    """Finds in a tenant's memory what was said, decided and remembered before; best first.

    The text of a document is quoted as in a prompt of this package, after its speaker's name. Raises
    :class:`DatabaseUnavailable` and :class:`DatabaseRejected` as the memory does.
    """

    memory: SkipValidation[MemoryStore]
    tenant_id: str = "default"
    limit: int = 8
    threshold: float = 0.0
    filter: MemoryFilter = MemoryFilter()
    _loop: asyncio.AbstractEventLoop = PrivateAttr(default_factory=lambda: _own_loop())

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return _from_thread(self._loop, self._aget_relevant_documents(query, run_manager=run_manager))

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager
        asked = MemoryQuery(query, self.limit, self.threshold, self.filter)
        return [_document(one) for one in await self.memory.search(self.tenant_id, asked)]


class MemoryItems(BaseStore):
    """LangGraph's items are kept in a memory, in a space of the tenant's own, where only this store finds them.

    ``fields`` are the paths of what in a value is found by a query, by default all of it, by words and by meaning as
    the memory can. Items expire as ``ttl`` and :meth:`put` say, by default never; what has expired is not found, and is
    deleted when it is come upon.
    """

    supports_ttl = True

    __slots__ = ("_fields", "_loop", "_memory", "_space", "ttl_config")

    def __init__(
        self,
        memory: MemoryStore,
        *,
        tenant_id: str = "default",
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        self.ttl_config = ttl
        self._memory = memory
        self._space = f"{tenant_id}{SEPARATOR}langgraph"
        self._fields = tuple(fields)
        self._loop = _own_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return _from_thread(self._loop, self.abatch(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations one after the other. Raises :class:`InvalidNamespaceError`, and what the memory does."""
        listed = list(ops)
        for op in listed:
            validate_op_namespace(op)
        if asyncio.get_running_loop() is not self._loop:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._all_done(listed), self._loop))
        return await self._all_done(listed)

    async def _all_done(self, ops: Sequence[Op]) -> list[Result]:
        return [await self._done(op) for op in ops]

    async def _done(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await self._get(op)
            case SearchOp():
                return await self._search(op)
            case PutOp():
                await self._put(op)
                return None
            case ListNamespacesOp():
                return await self._namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    async def _get(self, op: GetOp) -> Item | None:
        found = await self._at(op.namespace, op.key)
        if op.refresh_ttl:
            await self._refresh(found)
        return _item(found[0], scored=False) if found else None

    async def _at(self, namespace: tuple[str, ...], key: str) -> list[SearchResult]:
        return await self._current(MemoryQuery("", 1, filter=MemoryFilter(session_id=_place(namespace, key))))

    async def _put(self, op: PutOp) -> None:
        place = _place(op.namespace, op.key)
        if op.value is None:
            await self._memory.forget(self._space, ids=[place])
            return
        before, now = await self._at(op.namespace, op.key), datetime.now(UTC)
        kept = Memory(
            place,
            "" if op.index is False else self._text(dict(op.value), op.index or self._fields),
            kind=_KIND,
            session_id=place,
            time=now,
            tags=tuple(".".join(op.namespace[:depth]) for depth in range(1, len(op.namespace) + 1)),
            metadata={
                "namespace": list(op.namespace),
                "key": op.key,
                "value": dict(op.value),
                "created_at": before[0].memory.metadata["created_at"] if before else now.isoformat(),
                "indexed": op.index is not False,
                **_lasting(op.ttl, now),
            },
        )
        await self._memory.remember(self._space, [kept])

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = op.offset + op.limit
        within = MemoryFilter(kinds=(_KIND,), tags=(".".join(op.namespace_prefix),) if op.namespace_prefix else ())
        most = max(wanted, MOST) if op.filter or op.query else wanted
        asked = MemoryQuery(op.query or "", most, filter=within, standalone=True, with_repeats=True)
        results = await self._current(asked)
        found = {
            one.memory.id: (one, item)
            for one in results
            if (not op.query or one.memory.metadata.get("indexed", True))
            and _passes(item := _item(one, scored=bool(op.query)), op.filter)
        }
        shown = list(found.values())[op.offset : wanted]
        if op.refresh_ttl:
            await self._refresh([one for one, _ in shown])
        return [item for _, item in shown]

    async def _current(self, query: MemoryQuery) -> list[SearchResult]:
        """Return what is found that has not expired, and delete what has, which took the place of others."""
        gone: set[str] = set()
        while True:
            found, now = await self._memory.search(self._space, query), datetime.now(UTC)
            expired = {one.memory.id: one.memory for one in found if _has_expired(one.memory, now)}
            if expired.keys() <= gone:
                return [one for one in found if one.memory.id not in expired]
            last = max(kept.time or now for kept in expired.values())
            seen = MemoryFilter(ids=tuple(expired), until=last + timedelta(microseconds=1))  # not what was put since
            await self._memory.forget(self._space, filter=seen)
            gone |= expired.keys()

    async def _refresh(self, found: Sequence[SearchResult]) -> None:
        """Let items last as long as they do from now on."""
        now = datetime.now(UTC)
        lasting = [
            replace(one.memory, metadata={**one.memory.metadata, **_lasting(ttl, now)})
            for one in found
            if (ttl := one.memory.metadata.get("ttl")) is not None
        ]
        if lasting:
            await self._memory.remember(self._space, lasting)

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        newest = MemoryQuery("", MOST_LISTED, filter=MemoryFilter(kinds=(_KIND,)), with_texts=False)
        found = await self._current(newest)
        if len(found) == MOST_LISTED:
            log.warning("langgraph.namespaces_cut", looked_through=MOST_LISTED)
        known = InMemoryStore()  # LangGraph's own idea of what matches
        known.batch([PutOp(namespace, "", {}) for namespace in {_namespace(one) for one in found}])
        return known.batch([op])[0]  # type: ignore[return-value]

    def _text(self, value: dict[str, Any], fields: Sequence[str]) -> str:
        paths = (field if field == "$" else tokenize_path(field) for field in fields)
        return "\n".join(text for path in paths for text in get_text_at_path(value, path))


def _lasting(ttl: float | None, now: datetime) -> dict[str, Any]:
    """Return what is kept of an item that expires ``ttl`` minutes from now."""
    return {} if ttl is None else {"ttl": ttl, "expires_at": (now + timedelta(minutes=ttl)).isoformat()}


def _has_expired(kept: Memory, now: datetime) -> bool:
    until = kept.metadata.get("expires_at")
    return until is not None and datetime.fromisoformat(until) <= now


def _passes(item: SearchItem, wanted: dict[str, Any] | None) -> bool:
    """Return whether LangGraph's own store would let the item's value through."""
    if not wanted:
        return True
    store = InMemoryStore()
    store.put(("one",), "one", item.value)
    try:
        return bool(store.search(("one",), filter=wanted))
    except TypeError:  # it has nothing there that could be compared
        return False


def _place(namespace: tuple[str, ...], key: str) -> str:
    """Return the id of an item's memory, which is the session's as well: by that it is found at once."""
    return sha256(json.dumps([*namespace, key]).encode()).hexdigest()


def _namespace(found: SearchResult) -> tuple[str, ...]:
    return tuple(found.memory.metadata["namespace"])


def _item(found: SearchResult, *, scored: bool) -> SearchItem:
    kept = found.memory
    created_at = datetime.fromisoformat(kept.metadata["created_at"])
    return SearchItem(
        namespace=_namespace(found),
        key=kept.metadata["key"],
        value=dict(kept.metadata["value"]),
        created_at=created_at,
        updated_at=kept.time or created_at,
        score=found.score if scored else None,
    )


def _document(found: SearchResult) -> Document:
    kept = found.memory
    about = {
        "kind": kept.kind,
        "session_id": kept.session_id,
        "speaker": kept.speaker,
        "time": kept.time and kept.time.isoformat(),
        "score": found.score,
    }
    return Document(id=kept.id, page_content=quoted_message(kept.speaker, kept.text), metadata=about)


@contextmanager
def open_items(
    settings: Settings | None = None, *, fields: Sequence[str] = ("$",), ttl: TTLConfig | None = None
) -> Iterator[MemoryItems]:
    """Open the memory that the settings name as a store, for a program without an event loop: one runs in a thread.

    Raises :class:`SettingError` where the settings name no memory, and what opening it raises.
    """
    settings = settings or load_settings()
    ready: Future[MemoryItems] = Future()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with open_memory(settings) as (memory, memory_is):
            if memory is None:
                raise SettingError(f"LangGraph's items need a memory, which is {memory_is.what} ({memory_is.hint})")
            ready.set_result(MemoryItems(memory, tenant_id=settings.memory.tenant_id, fields=fields, ttl=ttl))
            await over.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(serve())
            except BaseException as error:  # who waits for the loop is told of it
                if ready.done():
                    raise
                ready.set_exception(error)

    thread = Thread(target=run, name="langgraph items", daemon=True)
    thread.start()
    items = ready.result()
    try:
        yield items
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


def _own_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop in which an object is made."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ContextBuilderError(
            "make it inside the event loop that is to run it, as in async def main(); without one, open_items() does"
        ) from None


def _from_thread(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the coroutine's result, which the loop of another thread gives."""
    try:
        here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop or not loop.is_running():
        coroutine.close()
        raise ContextBuilderError(
            "called without await from its own event loop; use the method that begins with a: ainvoke, aget, aput …"
            if here is loop
            else "the event loop that it was made in has ended"
        )
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
