"""A turn is what an orchestrator asks a prompt for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.section import ChatMessage, plain
from context_builder.errors import ContextError
from context_builder.memory.memory import MemoryFilter
from context_builder.quoting import quoted_message

DEFAULT_TENANT: Final = "default"
"""Whose memories are meant when a turn names no tenant and a store needs one."""

_OPTIONAL_KEYS: Final = ("name", "tool_calls", "tool_call_id", "function_call")
"""Keys that a chat endpoint takes beside role and content; other keys of a history entry stay out of the prompt."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation: the ids and texts of the envelope, and its history as chat messages.

    ``summary`` is what is known of the conversation before its history, newest first; ``preferences`` says whether what
    the user prefers is told too; of the memories ``memory_filter`` lets through some. ``altered`` says what redaction
    did to the user's message, if anything, and ``withheld`` whether a mark stands for it.
    """

    system_prompt: str
    user_message: str
    history: tuple[ChatMessage, ...]
    tenant_id: str | None = None
    session_id: str | None = None
    persona_id: str | None = None
    user_id: str | None = None
    query_embedding: Sequence[float] | None = None
    summary: tuple[Candidate, ...] = ()
    preferences: bool = False
    memory_filter: MemoryFilter | None = None
    altered: str = ""
    withheld: bool = False

    @property
    def query(self) -> str:
        """Return the query for the memories; empty where the message may not be shown."""
        return "" if self.withheld else self.user_message

    @classmethod
    def read(cls, envelope: Mapping[str, Any]) -> Turn:
        """Return the turn of an envelope; missing keys are empty, and unknown ones are ignored.

        Raises :class:`~context_builder.errors.ContextError` for a tenant without a name, for a history that is no
        messages but one, or a text, and for a filter of another type.
        """
        return cls(
            system_prompt=_text(envelope.get("system_prompt")),
            user_message=_text(envelope.get("user_message")),
            history=tuple(_messages(_listed(envelope.get("history") or ()))),
            tenant_id=tenant(_id(envelope.get("tenant_id"))),
            session_id=_id(envelope.get("session_id")),
            persona_id=_id(envelope.get("persona_id")),
            user_id=_id(envelope.get("user_id")),
            query_embedding=envelope.get("query_embedding"),
            preferences=bool(envelope.get("preferences")),
            memory_filter=_filter(envelope.get("memory_filter")),
            summary=tuple(_points(envelope.get("summary") or ()))[::-1],
        )


def _filter(value: object) -> MemoryFilter | None:
    if value is not None and not isinstance(value, MemoryFilter):
        raise ContextError(f"memory_filter: is of type {type(value).__name__}, and must be a MemoryFilter")
    return value


def tenant(tenant_id: str | None) -> str | None:
    """Return the tenant, if one is named; without a name it is not the default tenant, whose memories are another's."""
    if tenant_id is not None and not tenant_id.strip():
        raise ContextError("tenant_id: is empty; leave it out for the default tenant")
    return tenant_id


def _points(summary: str | Iterable[Any]) -> Iterable[Candidate]:
    """Yield a text, or several with or without an id of their own, oldest first.

    ``words`` are those of a text without what stands before them, such as who said them.
    """
    for place, point in enumerate([summary] if isinstance(summary, str) else summary):
        entry = point if isinstance(point, Mapping) else {"text": point}
        if text := _text(entry.get("text")).strip():
            words = _text(entry.get("words")).strip()
            known = {"words": words} if words else {}
            name = _id(entry.get("id")) or f"summary-{place}"
            yield Candidate(name, text, ContextType.SUMMARY, origins=("turn",), metadata=known)


def _listed(history: object) -> Iterable[Any]:
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable):
        raise ContextError(f"history: is of type {type(history).__name__}, and must be a list of chat messages")
    return history


def _messages(history: Iterable[Any]) -> Iterable[ChatMessage]:
    for entry in history:
        if (
            type(entry) is dict
            and len(entry) == 2
            and type(entry.get("content")) is str
            and _is_role(entry.get("role"))
        ):
            yield entry  # nearly all there are
        elif isinstance(entry, Mapping):
            yield _message(entry)
        elif callable(dump := getattr(entry, "model_dump", None)):  # a Pydantic model, as openai's messages are
            yield _message(dump())


def _message(entry: Mapping[str, Any]) -> ChatMessage:
    role, content = entry.get("role"), entry.get("content")
    known = {
        "role": role if _is_role(role) else "user",
        "content": content if isinstance(content, str | list) else _text(content),
    }
    return known | {key: entry[key] for key in _OPTIONAL_KEYS if entry.get(key) not in (None, [])}


def _is_role(value: object) -> bool:
    return isinstance(value, str) and value != ""  # a member of an enumeration, too


def _text(value: object) -> str:
    return "" if value is None else plain(value)


def _id(value: object) -> str | None:
    return None if value is None else str(value)


def spoken(candidate: Candidate) -> ChatMessage:
    """Return a chat message of the conversation; its speaker's name stands before the text where there are several."""
    own = candidate.role == "assistant" and not candidate.speaker
    said = candidate.text if own else quoted_message(candidate.speaker, candidate.text)
    return {"role": candidate.role, "content": said}
