"""The prompt of a conversation's next turn: system prompt, what is known, history, memories, the user's message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from context_builder.assembly.access import AccessQuestion
from context_builder.assembly.budget.message_tokens import Message, MessageTokenCounter, plain
from context_builder.assembly.budget.receipt import Outcome, Receipt
from context_builder.assembly.budget.section import Item
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.health import HealthState
from context_builder.assembly.overflow.summarizer import HistorySummarizer
from context_builder.assembly.pipeline import Assembled
from context_builder.assembly.prompt.built_context import BuiltContext
from context_builder.assembly.prompt.cache import digest_of
from context_builder.assembly.prompt.fitting import Draft, Fitted, Fitting, Selection
from context_builder.assembly.ranking.query_kind import ORDER, PLANS, kind_of
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.preference_history import FindPreferences
from context_builder.assembly.retrieval.retriever import AskStrategy, RetrievalResult
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.assembly.retrieval.store_source import StoreAccess
from context_builder.assembly.strategies.builtin import UserPreferencesStrategy
from context_builder.assembly.strategies.strategy import StrategyRequest
from context_builder.assembly.turn import DEFAULT_TENANT, Turn
from context_builder.quoting import quoted_name

USER: Final = "user"
_PREFERENCES: Final = "preferences"
_BY_USER: Final = "already in the user's message"


class TurnAssembly:
    """Asks the memories for what fits the turn's message, and puts it between the first and the last message.

    The user's message is redacted, also for the memories, where ``config`` says so.
    """

    def __init__(
        self,
        given: Turn,
        limit: int,
        config: AssemblyConfig,
        counter: MessageTokenCounter,
        policy: RedactionPolicy,
        overflow: HistorySummarizer,
        find_preferences: FindPreferences,
    ) -> None:
        self.limit = limit
        self._given = given
        self._turn = policy.turn(given) if config.redact_user_message else given
        self._config = config
        self._counter = counter
        self._overflow = overflow
        self._find_preferences = find_preferences

    def cache_key(self) -> Hashable:
        return digest_of(self._turn, self.limit)

    def query(self) -> RetrievalQuery | None:
        turn = self._turn
        return RetrievalQuery(
            query=turn.query,
            top_k=self._config.top_k,
            threshold=self._config.threshold,
            tenant_id=turn.tenant_id,
            session_id=turn.session_id,
            persona_id=turn.persona_id,
            user_id=turn.user_id,
            embedding=turn.query_embedding,
        )

    def strategies(self, now: datetime) -> Mapping[str, AskStrategy]:
        """Return the user's preferences as a strategy, where the turn wants them."""
        turn = self._turn
        if not turn.preferences or turn.user_id is None:
            return {}
        tenant_id = turn.tenant_id or DEFAULT_TENANT
        request = StrategyRequest(turn.query, now, tenant_id, turn.user_id, find_preferences=self._find_preferences)
        return {_PREFERENCES: preferences_for(request)}

    def access_question(self, now: datetime) -> AccessQuestion:
        return AccessQuestion(self._turn.query, now, self._turn.tenant_id, self._turn.user_id)

    def fit(self, fitting: Fitting, selection: Selection, limit: int) -> Fitted:
        return fitting.fitted(selection, limit)

    def draft(self, retrieved: RetrievalResult) -> Draft:
        turn, (config, order) = self._turn, self._planned()
        refused: list[Receipt] = []
        if turn.altered:
            refused.append(Receipt(USER, USER, Outcome.WITHHELD if turn.withheld else Outcome.REDACTED, turn.altered))
        return Draft(
            query=turn.query,
            required=self._ends(),
            candidates=(*retrieved.candidates, turn.summary, list(self._preferences(retrieved))),
            order=order,
            config=config,
            history=turn.history,
            top_k=self._config.memories_wanted(retrieved.state),
            threshold=self._config.threshold,
            present_texts={turn.user_message.strip(): _BY_USER},
            refused=refused,
            masked=[(self._given.user_message, turn.user_message)] if turn.altered else [],
        )

    def assemble(
        self, fitted: Fitted, refit: Callable[[int], Fitted], retrieved: RetrievalResult
    ) -> Assembled[BuiltContext, Fitted]:
        turn, (first, last) = self._turn, self._ends()
        messages = {kind: part.section.messages(part.taken) for kind, part in fitted.allocations.items()}
        history, snippets = messages[ContextType.RECENT], messages[ContextType.SEMANTIC]
        preferences = messages[ContextType.USER_PREFERENCES]
        known = {"summary": messages[ContextType.SUMMARY]} if turn.summary else {}
        if turn.preferences:
            known["preferences"] = preferences
        total = self._counter.prompt((first, last)) + fitted.tokens
        contents = {"system": [first], "history": history, "snippets": snippets, "user": [last], **known}
        counts = self._counts(contents, total)
        spoken = fitted.taken(ContextType.RECENT)
        withheld = sum(one.outcome is Outcome.WITHHELD for one in fitted.refused) + sum(one.withheld for one in spoken)
        context = BuiltContext(
            system_prompt=turn.system_prompt,
            messages=[first, *preferences, *messages[ContextType.SUMMARY], *history, *snippets, last],
            token_counts=counts,
            debug=self._debug(fitted, retrieved, len(history), counts["history"]) | {"withheld": withheld},
            snippets=[_snippet(item) for item in fitted.taken(ContextType.SEMANTIC)],
            history=history,
            write_receipts=lambda: list(fitted.receipts()),
            fit_again=lambda more: self.assemble(refit(fitted.limit + more), refit, retrieved).prompt,
        )
        return Assembled(context, fitted, total)

    def finish(self, assembled: Assembled[BuiltContext, Fitted], retrieved: RetrievalResult, now: datetime) -> None:
        """Summarize the messages trimmed from the history, into the memories that are not down."""
        trimmed = assembled.fitted.history.before(len(assembled.fitted.taken(ContextType.RECENT)))
        if trimmed and self._config.store_summaries:
            up = [name for name, state in retrieved.states.items() if state is not HealthState.DOWN]
            self._overflow.keep(self._turn, trimmed, now, into=up)

    def _ends(self) -> tuple[Message, Message]:
        """Return the first and the last message: always there.

        The system prompt goes out as it is: the application's own words, in which an address, for one, is meant to be.
        """
        turn = self._turn
        return {"role": "system", "content": turn.system_prompt}, {"role": "user", "content": turn.user_message}

    def _planned(self) -> tuple[AssemblyConfig, Sequence[ContextType]]:
        """Return the config and the order of sections; where that is set, as suits the kind of the message."""
        if not self._config.by_query:
            return self._config, ORDER
        plan = PLANS[kind_of(self._turn.user_message)]
        similarity, recency = plan.similarity_weight, plan.recency_weight
        return replace(self._config, similarity_weight=similarity, recency_weight=recency), plan.order

    def _preferences(self, retrieved: RetrievalResult) -> Iterator[Candidate]:
        """Yield the user's preferences after their name: a conversation may have several people."""
        name = quoted_name(self._turn.user_id or "")
        for one in retrieved.found.get(_PREFERENCES, ()):
            yield replace(one, text=f"{name}: {one.text}")

    def _counts(self, contents: Mapping[str, Sequence[Message]], total: int) -> dict[str, int]:
        """Return the tokens by what they are for."""
        counts = {name: sum(map(self._content, messages)) for name, messages in contents.items()}
        return counts | {"overhead": total - sum(counts.values()), "total": total}

    def _debug(self, fitted: Fitted, retrieved: RetrievalResult, count: int, history_tokens: int) -> dict[str, Any]:
        turn, memories = self._turn, fitted.taken(ContextType.SEMANTIC)
        snippet_tokens = sum(self._counter.text(item.text) for item in memories)
        missing = [f"{failure.name}: {failure.message}" for failure in retrieved.failures]
        return {
            "session_id": turn.session_id,
            "tenant_id": turn.tenant_id,
            "user_id": turn.user_id,
            "somabrain_state": next(iter(retrieved.states.values()), retrieved.state).value,
            "memory_states": {name: state.value for name, state in retrieved.states.items()},
            "memory": "; ".join([retrieved.outcome, *missing]),
            "retrieval_seconds": round(retrieved.seconds, 6),
            "snippet_ids": [item.id for item in memories],
            "snippet_count": len(memories),
            "snippet_tokens": snippet_tokens,
            "history_count": count,
            "history_trimmed": len(turn.history) - count,
            "total_tokens": snippet_tokens + history_tokens,
            "max_prompt_tokens": fitted.limit,
        }

    def _content(self, message: Message) -> int:
        content = message["content"]
        return self._counter.text(content if type(content) is str else plain(content))


def preferences_for(request: StrategyRequest) -> AskStrategy:
    """Find the preferences of the request's user."""

    def ask(store: StoreAccess) -> Awaitable[Sequence[Candidate]]:
        return UserPreferencesStrategy().candidates(replace(request, store=store))

    return ask


def _snippet(item: Item) -> dict[str, Any]:
    candidate = item.candidate or Candidate(item.id, item.text)
    return {
        "id": item.id,
        "text": item.text,
        "score": candidate.score,
        "base_score": candidate.signal("similarity"),
        "recency": candidate.signal("recency"),
        "signals": {one.name: one.score for one in candidate.signals},
        "metadata": dict(candidate.metadata),
    }
