"""A context put together from strategies: what the fluent methods were told, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from context_builder.assembly.access import AccessQuestion
from context_builder.assembly.budget.message_tokens import MessageTokenCounter
from context_builder.assembly.budget.receipt import Outcome, Receipt, receipt
from context_builder.assembly.budget.section import name_of
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.pipeline import Assembled
from context_builder.assembly.prompt.context import Context, ContextMetadata, ModelType
from context_builder.assembly.prompt.fitting import Draft, Fitted, Fitting, Selection
from context_builder.assembly.prompt.formatter import ContextFormatter
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.gather import Failure
from context_builder.assembly.retrieval.retriever import AskStrategy, RetrievalResult
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.assembly.retrieval.store_source import StoreAccess
from context_builder.assembly.strategies.strategy import ContextStrategy, StrategyRequest
from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.errors import EmptyContext, NoMemoryStore, StrategyError, TokenLimitExceeded

DEFAULT_TOKEN_LIMIT: Final = 4096

PRIORITY: Final = (
    ContextType.RECENT,
    ContextType.SUMMARY,
    ContextType.SEMANTIC,
    ContextType.USER_PREFERENCES,
)
"""Sections in the order in which they are filled, after the system message."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Holds the options set by the builder's fluent methods; ``optional`` are places of strategies that may fail."""

    strategies: tuple[ContextStrategy, ...] = ()
    optional: frozenset[int] = frozenset()
    token_limit: int | None = None
    system_message: str | None = None
    tenant_id: str = DEFAULT_TENANT
    user_id: str | None = None
    conversation_id: str | None = None
    query: str = ""

    def named(self) -> dict[str, ContextStrategy]:
        """Return the strategies by class and place, as errors name them."""
        return {f"{type(one).__name__} ({place})": one for place, one in enumerate(self.strategies, 1)}


class ContextRequest:
    """Asks the strategies, and puts their candidates behind the system message.

    Raises :class:`~context_builder.errors.NoMemoryStore` and :class:`~context_builder.errors.StrategyError` where a
    strategy that is not optional fails, :class:`~context_builder.errors.EmptyContext` when there is nothing that may
    be shown and fits, and :class:`~context_builder.errors.TokenLimitExceeded` when the system message alone is over.
    """

    def __init__(
        self,
        options: BuildOptions,
        config: AssemblyConfig,
        counter: MessageTokenCounter,
        policy: RedactionPolicy,
        request: StrategyRequest,
    ) -> None:
        self.limit = config.limit(options.token_limit, DEFAULT_TOKEN_LIMIT)
        self._options = options
        self._config = config
        self._counter = counter
        self._policy = policy
        self._request = request
        self._formatter = ContextFormatter()
        self._system: str | None = None
        self._skipped: tuple[str, ...] = ()

    def cache_key(self) -> Hashable:
        """Return the options: a strategy counts as the same while it is the same object."""
        try:
            hash(self._options)
        except TypeError:  # a strategy of the application's own that cannot be a key
            return None
        return self._options, self.limit

    def query(self) -> RetrievalQuery | None:
        return None

    def strategies(self, now: datetime) -> Mapping[str, AskStrategy]:
        self._request = replace(self._request, now=now)
        return {name: _asking(strategy, self._request) for name, strategy in self._options.named().items()}

    def access_question(self, now: datetime) -> AccessQuestion:
        return AccessQuestion(self._request.query, now, self._options.tenant_id, self._options.user_id)

    def fit(self, fitting: Fitting, selection: Selection, limit: int) -> Fitted:
        return fitting.fitted(selection, limit)

    def draft(self, retrieved: RetrievalResult) -> Draft:
        spare = {name for place, name in enumerate(self._options.named()) if place in self._options.optional}
        for failure in retrieved.failures:
            if failure.name not in spare:
                raise _error(failure) from failure.error
        self._skipped = tuple(f"{failure.name}: {failure.message}" for failure in retrieved.failures)
        found = [retrieved.found[name] for name in self._options.named() if name in retrieved.found]
        refused: list[Receipt] = []
        self._system = self._system_message(found, refused)
        required = ({"role": "system", "content": self._system},) if self._system is not None else ()
        return Draft(
            query=self._request.query,
            required=required,
            candidates=found,
            order=PRIORITY,
            config=self._config,
            keeps_duplicates=ContextType.USER_PREFERENCES,
            refused=refused,
        )

    def assemble(
        self, fitted: Fitted, refit: Callable[[int], Fitted], retrieved: RetrievalResult
    ) -> Assembled[Context, Fitted]:
        if self._system is None and not any(fitted.selection.items.values()):
            raise EmptyContext(_why_empty(fitted.selection.refused))
        plain, fitted, tokens = self._within(fitted, refit, ModelType.PLAIN)

        def fit_for(model: ModelType) -> Context:
            return plain if model is ModelType.PLAIN else self._within(fitted, refit, model)[0]

        return Assembled(replace(plain, fit_for=fit_for), fitted, tokens)

    def finish(self, assembled: Assembled[Context, Fitted], retrieved: RetrievalResult, now: datetime) -> None:
        """Do nothing: strategies have no work after the build."""

    def _within(self, fitted: Fitted, refit: Callable[[int], Fitted], model: ModelType) -> tuple[Context, Fitted, int]:
        """Return the context within the limit, as messages and as ``model`` takes them in one text; and its tokens."""
        while True:
            context = self._context(fitted)
            over = self._counter.text(context.written(model)) - self.limit
            total = context.metadata.total_tokens
            if not any(part.taken for part in fitted.allocations.values()):
                if self._system is None:
                    raise EmptyContext(f"nothing fits into {self.limit} tokens")
                if over > 0:
                    raise TokenLimitExceeded(self.limit + over, self.limit)
            if over <= 0:
                return context, fitted, total
            fitted = refit(max(self._counter.prompt(fitted.selection.draft.required), total - over))

    def _system_message(self, found: Sequence[Sequence[Candidate]], refused: list[Receipt]) -> str | None:
        """Return the system message with what strategies add to it; the latter as it may be shown."""
        texts = [self._options.system_message] if self._options.system_message else []
        for one in (one for candidates in found for one in candidates if one.type is ContextType.SYSTEM):
            shown = self._policy.text(one.text)
            if shown.text is None:
                refused.append(receipt(one.id, one, name_of(one.type), Outcome.WITHHELD, shown.altered))
            else:
                texts.append(shown.text)
        return "\n\n".join(texts) or None

    def _context(self, fitted: Fitted) -> Context:
        messages = self._formatter.messages(self._system, fitted)
        return Context(
            system_message=self._system,
            conversation_history=self._formatter.history(fitted),
            user_preferences=self._formatter.block(ContextType.USER_PREFERENCES, fitted),
            summary=self._formatter.block(ContextType.SUMMARY, fitted),
            relevant=[item.text for item in fitted.taken(ContextType.SEMANTIC)],
            messages=messages,
            metadata=ContextMetadata(
                user_id=self._options.user_id,
                conversation_id=self._options.conversation_id,
                total_tokens=self._counter.prompt(messages),
                message_count=len(messages),
                created_at=self._request.now,
            ),
            receipts=list(fitted.receipts()),
            skipped=self._skipped,
        )


def _asking(strategy: ContextStrategy, request: StrategyRequest) -> AskStrategy:
    """Return a function that asks a strategy, and fails if this is no coroutine or offers something else."""

    async def ask(store: StoreAccess) -> list[Candidate]:
        offered = list(await strategy.candidates(replace(request, store=store)))
        for one in offered:
            _check(one)
        return offered

    return ask


def _check(offered: object) -> None:
    """Raise :class:`TypeError` for what the pipeline could not rank, redact or count."""
    if not isinstance(offered, Candidate):
        raise TypeError(f"offered {type(offered).__name__}, where a Candidate belongs")
    for name, kind in (("id", str), ("text", str), ("base_score", int | float), ("metadata", Mapping)):
        if not isinstance(value := getattr(offered, name), kind):
            raise TypeError(f"offered a Candidate whose {name} is of type {type(value).__name__}")


def _error(failure: Failure) -> Exception:
    if isinstance(failure.error, NoMemoryStore):
        return NoMemoryStore(f"{failure.name}: {failure.error}")
    return StrategyError(f"{failure.name}: {failure.message}")


def _why_empty(refused: Sequence[Receipt]) -> str:
    withheld = [one for one in refused if one.outcome is Outcome.WITHHELD]
    if not withheld:
        return "no system message, and no strategy found anything"
    return f"no system message, and all {len(withheld)} that strategies found was {withheld[0].reason}"
