"""These adapters offer this process's redactor as a service, and a remote redaction service as a redactor."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import Final

import structlog

from context_builder.analysis.bounded_process import Runner, TookTooLong
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.gather import told_failure
from context_builder.errors import DatabaseError, DatabaseUnavailable
from context_builder.knowledge.services import MemoryRedaction
from context_builder.redaction.redactor import RedactorProtocol

log = structlog.get_logger(__name__)


QUICK: Final = 2_000
"""Characters that are redacted in some milliseconds."""

LONG: Final = 20_000
"""Characters of a text that is redacted by itself."""

_MOST_ENDED: Final = 1_000
"""Texts that took too long which are remembered."""

_ENDED_SECONDS: Final = 600.0
"""Seconds for which these take no time again; then the failure may have passed."""


class LocalRedaction:
    """Redacts with this process's redactor; implements :class:`~context_builder.knowledge.services.MemoryRedaction`."""

    def __init__(self, redactor: RedactorProtocol) -> None:
        self._policy = RedactionPolicy(redactor)

    async def redact(self, texts: Sequence[str]) -> list[str | None]:
        return await asyncio.to_thread(lambda: [self._policy.text(text).text for text in texts])


class BoundedRedaction:
    """Redacts where it holds up nobody; implements :class:`~context_builder.knowledge.services.MemoryRedaction`.

    ``make`` is a function of a module, by which what ``run`` runs makes the redactor. A text that takes longer than
    that lets it is withheld.
    """

    def __init__(self, make: Callable[[], RedactorProtocol], run: Runner) -> None:
        self._make = make
        self._run = run
        self._ended: OrderedDict[bytes, float] = OrderedDict()

    async def redact(self, texts: Sequence[str]) -> list[str | None]:
        if sum(map(len, texts)) <= QUICK:
            return await asyncio.to_thread(redacted_by, self._make, list(texts))
        short = [text for text in texts if len(text) <= LONG]
        redacted: dict[str, str | None] = {}
        try:
            redacted |= zip(short, await self._run(redacted_by, self._make, short), strict=True)
            for text in dict.fromkeys(texts):
                if text not in redacted:  # a long one may take all the time there is
                    redacted[text] = await self._alone(text)
        except TookTooLong as error:
            log.warning("redaction.ended", reason=str(error))
        return [redacted.get(text) for text in texts]

    async def _alone(self, text: str) -> str | None:
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if time.monotonic() - self._ended.get(digest, float("-inf")) < _ENDED_SECONDS:
            return None
        try:
            return (await self._run(redacted_by, self._make, [text]))[0]
        except TookTooLong:
            self._ended[digest] = time.monotonic()
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
            raise


def redacted_by(make: Callable[[], RedactorProtocol], texts: Sequence[str]) -> list[str | None]:
    """Return the texts as the redactor of that kind lets them be shown; None for one that it fails at."""
    policy = _policy_of(make)
    return [policy.text(text).text for text in texts]


@cache
def _policy_of(make: Callable[[], RedactorProtocol]) -> RedactionPolicy:
    return RedactionPolicy(make())


class PreparedRedactor:
    """Redacts texts that a service was asked for before, by the same task; fails at any other, which is withheld so."""

    def __init__(self, service: MemoryRedaction) -> None:
        self.service = service
        self._answers: ContextVar[Mapping[str, str | None]] = ContextVar("answers", default=MappingProxyType({}))

    async def prepare(self, show: Callable[[RedactionPolicy], object]) -> str:
        """Ask the service, once, for every text that ``show`` sends through the policy it is given.

        Return what went wrong, in words; empty where nothing did.
        """
        texts = _Texts()
        await asyncio.to_thread(show, RedactionPolicy(texts))
        self._answers.set({})
        try:
            redacted = await self.service.redact(list(texts.seen)) if texts.seen else []
        except DatabaseError as error:
            return told_failure(error)
        self._answers.set(dict(zip(texts.seen, redacted, strict=True)))
        return ""

    def redact(self, text: str) -> str:
        """Return what the service made of the text."""
        redacted = self._answers.get().get(text)
        if redacted is None:
            raise DatabaseUnavailable("the redaction service did not redact it")
        return redacted


class _Texts:
    """Notes each text once, in order, and changes none."""

    def __init__(self) -> None:
        self.seen: dict[str, None] = {}

    def redact(self, text: str) -> str:
        self.seen[text] = None
        return text
