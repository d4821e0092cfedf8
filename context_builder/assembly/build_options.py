"""What a context that strategies make should be, and asking them for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.retrieval.gather import Failure, gather
from context_builder.assembly.retrieval.preference_history import FindPreferences, by_patterns
from context_builder.assembly.strategies.strategy import ContextStrategy, Request
from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.errors import NoMemoryStore, StrategyError
from context_builder.memory.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """What the strategies found, in their order; ``skipped`` names each optional one that failed, and why."""

    candidates: list[Candidate]
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What the builder's fluent methods were told; ``optional`` are the strategies that may fail."""

    strategies: tuple[ContextStrategy, ...] = ()
    optional: frozenset[int] = frozenset()
    token_limit: int | None = None
    system_message: str | None = None
    tenant_id: str = DEFAULT_TENANT
    user_id: str | None = None
    conversation_id: str | None = None
    query: str = ""

    async def offered(
        self, store: MemoryStore | None, now: datetime, deadline: float, find_preferences: FindPreferences = by_patterns
    ) -> StrategyResult:
        """Ask all strategies at once, for ``deadline`` seconds at most.

        Raises :class:`~context_builder.errors.NoMemoryStore` and :class:`~context_builder.errors.StrategyError`.
        """
        request = Request(
            query=self.query,
            now=now,
            tenant_id=self.tenant_id,
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            store=store,
            find_preferences=find_preferences,
        )
        named = {f"{type(one).__name__} ({place})": one for place, one in enumerate(self.strategies, 1)}
        spare = {name for place, name in enumerate(named) if place in self.optional}
        gathered = await gather({name: _asked(one, request) for name, one in named.items()}, deadline)
        for failure in gathered.failures:
            if failure.name not in spare:
                raise _error(failure) from failure.error
        return StrategyResult(
            [candidate for name in named for candidate in gathered.answers.get(name, ())],
            tuple(f"{failure.name}: {failure.message}" for failure in gathered.failures),
        )


async def _asked(strategy: ContextStrategy, request: Request) -> list[Candidate]:
    """What it offers. One that is no coroutine, or that offers something else, fails here, as any other does."""
    offered = list(await strategy.candidates(request))
    for one in offered:
        if not isinstance(one, Candidate):
            raise TypeError(f"offered {type(one).__name__}, where a Candidate belongs")
    return offered


def _error(failure: Failure) -> Exception:
    if isinstance(failure.error, NoMemoryStore):
        return NoMemoryStore(f"{failure.name}: {failure.error}")
    return StrategyError(f"{failure.name}: {failure.message}")
