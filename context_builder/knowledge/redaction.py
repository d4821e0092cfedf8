"""These adapters offer this process's redactor as a service, and a remote redaction service as a redactor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType

from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.gather import told_failure
from context_builder.errors import KnowledgeError, KnowledgeUnavailable
from context_builder.knowledge.services import MemoryRedaction
from context_builder.redaction.redactor import RedactorProtocol


class LocalRedaction:
    """Redacts with this process's redactor; implements :class:`~context_builder.knowledge.services.MemoryRedaction`."""

    def __init__(self, redactor: RedactorProtocol) -> None:
        self._policy = RedactionPolicy(redactor)

    async def redact(self, texts: Sequence[str]) -> list[str | None]:
        return await asyncio.to_thread(lambda: [self._policy.text(text).text for text in texts])


class PreparedRedactor:
    """Redacts texts that a service was asked for before, by the same task; fails at any other, which is withheld so."""

    def __init__(self, service: MemoryRedaction) -> None:
        self._service = service
        self._answers: ContextVar[Mapping[str, str | None]] = ContextVar("answers", default=MappingProxyType({}))

    async def prepare(self, show: Callable[[RedactionPolicy], object]) -> str:
        """Ask the service, once, for every text that ``show`` sends through the policy it is given.

        Return what went wrong, in words; empty where nothing did.
        """
        texts = _Texts()
        show(RedactionPolicy(texts))
        self._answers.set({})
        try:
            redacted = await self._service.redact(list(texts.seen)) if texts.seen else []
        except KnowledgeError as error:
            return told_failure(error)
        self._answers.set(dict(zip(texts.seen, redacted, strict=True)))
        return ""

    def redact(self, text: str) -> str:
        """Return what the service made of the text."""
        redacted = self._answers.get().get(text)
        if redacted is None:
            raise KnowledgeUnavailable("the redaction service did not redact it")
        return redacted


class _Texts:
    """Notes each text once, in order, and changes none."""

    def __init__(self) -> None:
        self.seen: dict[str, None] = {}

    def redact(self, text: str) -> str:
        self.seen[text] = None
        return text
