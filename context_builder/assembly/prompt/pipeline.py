"""From a turn and what its memories gave to messages that fit: pure, so the same input gives the same prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from context_builder.assembly.budget.allocation import Allocation
from context_builder.assembly.budget.message_tokens import Message, MessageTokenCounter, plain
from context_builder.assembly.budget.receipt import Outcome, Receipt, receipt, receipts_of
from context_builder.assembly.budget.section import Item
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.health import HealthState
from context_builder.assembly.phases import Metrics, phase
from context_builder.assembly.prompt.built_context import BuiltContext
from context_builder.assembly.prompt.history import HISTORY
from context_builder.assembly.prompt.turn_budget import MEMORY, SUMMARY, Fitted, Fitting, Offer
from context_builder.assembly.ranking.deduplicate import deduplicate
from context_builder.assembly.ranking.query_kind import PLANS, kind_of
from context_builder.assembly.ranking.scoring import ranked, score_candidates
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.turn import Turn

USER: Final = "user"

ORDER: Final = (MEMORY, SUMMARY, HISTORY)
"""What is kept first, after the system prompt and the user's message, unless the kind of query chooses."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A context; what did not fit into it of the history, oldest first; and what there was to choose from."""

    context: BuiltContext
    trimmed: Sequence[Message]
    offer: Offer
    fitted: Fitted

    def offered_tokens(self, tally: MessageTokenCounter, given: Turn) -> tuple[int, int]:
        """Tokens of all that competed for the prompt, as it was ``given`` and as it was redacted.

        Messages that are long past are counted as they were given: nobody redacted them. Takes as long as counting
        the whole history does, so it is not for where a turn waits.
        """
        parts = self.fitted.parts.values()
        left = sum(part.section.cost(item) for part in parts for item, _ in part.left)
        past = sum(map(tally.message, self.fitted.history.unseen))
        redacted = self.context.token_counts["total"] + left + past
        texts = (*self.offer.masked, (given.user_message, self.offer.turn.user_message))
        masked = sum(tally.text(before) - tally.text(after) for before, after in texts)
        spoken = sum(tally.message(before) - tally.message(after) for before, after in self.fitted.history.masked)
        return redacted + masked + spoken, redacted


class TurnPipeline:
    """fuse → rank → govern → fit → assemble."""

    def __init__(
        self, rules: AssemblyConfig, tally: MessageTokenCounter, governor: RedactionPolicy, metrics: Metrics
    ) -> None:
        self._rules = rules
        self._tally = tally
        self._governor = governor
        self._metrics = metrics
        self._fitting = Fitting(tally, governor, rules.choose)

    def run(
        self, turn: Turn, gathered: Sequence[Sequence[Candidate]], *, state: HealthState, limit: int, now: datetime
    ) -> Assembled:
        """Raises :class:`~context_builder.errors.TokenLimitExceeded` when system prompt and message alone are over."""
        metrics = self._metrics
        refused: list[Receipt] = []
        rules, order = self._planned(turn)
        with phase("salience", metrics.time_salience()):
            merged: list[Candidate] = []
            scored = score_candidates(deduplicate(gathered, merged), now, rules)
            refused += (receipt(one.id, one, MEMORY, Outcome.DROPPED, "found twice") for one in merged)
        with phase("ranking", metrics.time_ranking()):
            best = _best(scored, self._rules.memories_wanted(state), self._rules.threshold, refused)
        with phase("redaction", metrics.time_redaction()):
            offer = self._offer(turn, best, order, refused)
        with phase("tokenisation", metrics.time_tokenisation()):
            fitted = self._fitting.fitted(offer, limit)
        with phase("prompt", metrics.time_prompt()):
            return self._assembled(offer, fitted, limit)

    def _offer(self, turn: Turn, best: Sequence[Candidate], order: Sequence[str], refused: list[Receipt]) -> Offer:
        """What may be shown of the turn and of its memories."""
        masked: list[tuple[str, str]] = []
        shown: dict[str, list[Item]] = {MEMORY: [], SUMMARY: []}
        for section, candidates in ((MEMORY, best), (SUMMARY, turn.summary)):
            for given in candidates:
                ruled = self._governor.candidate(given)
                one = ruled.value
                if ruled.withheld:
                    refused.append(receipt(given.id, given, section, Outcome.WITHHELD, ruled.altered))
                else:
                    shown[section].append(Item(one.id, one.text, one.score, candidate=one, altered=ruled.altered))
                if ruled.altered:
                    masked.append((given.text, "" if ruled.withheld else one.text))
        if turn.altered:
            refused.append(Receipt(USER, USER, Outcome.WITHHELD if turn.withheld else Outcome.REDACTED, turn.altered))
        return Offer(turn, _ends(turn), shown, order, refused, masked)

    def _planned(self, turn: Turn) -> tuple[AssemblyConfig, tuple[str, ...]]:
        """The rules and the order of sections; where that is set, as the kind of the turn's message wants them."""
        if not self._rules.by_query:
            return self._rules, ORDER
        plan = PLANS[kind_of(turn.user_message)]
        similarity, recency = plan.similarity_weight, plan.recency_weight
        return replace(self._rules, similarity_weight=similarity, recency_weight=recency), plan.order

    def _assembled(self, offer: Offer, fitted: Fitted, limit: int) -> Assembled:
        turn, ends = offer.turn, offer.ends
        memory, known, spoken = (fitted.parts[name] for name in ORDER)
        history = spoken.section.messages(spoken.taken)
        block = memory.section.messages(memory.taken)
        summary = known.section.messages(known.taken)
        contents = {"system": ends[:1], "history": history, "snippets": block, "user": ends[1:]}
        counts = self._counts(
            contents | ({"summary": summary} if turn.summary else {}),
            self._tally.prompt(ends) + sum(part.tokens for part in fitted.parts.values()),
        )
        refused = (*offer.refused, *fitted.refused)
        withheld = sum(one.outcome is Outcome.WITHHELD for one in refused) + sum(one.withheld for one in spoken.taken)
        context = BuiltContext(
            system_prompt=turn.system_prompt,
            messages=[ends[0], *summary, *history, *block, ends[1]],
            token_counts=counts,
            debug=self._debug(turn, memory, history, counts["history"]) | {"withheld": withheld},
            snippets=[_snippet(item) for item in memory.taken],
            history=history,
            write_receipts=lambda: [
                *receipts_of(memory), *refused, *receipts_of(known), *receipts_of(spoken), *fitted.history.receipts()
            ],
            fit_again=lambda more: self._assembled(
                offer, self._fitting.fitted(offer, limit + more), limit + more
            ).context,
        )  # fmt: skip
        return Assembled(context, fitted.history.before(len(spoken.taken)), offer, fitted)

    def _counts(self, contents: Mapping[str, Sequence[Message]], total: int) -> dict[str, int]:
        """Tokens by what they are for."""
        counts = {name: sum(map(self._content, messages)) for name, messages in contents.items()}
        return counts | {"overhead": total - sum(counts.values()), "total": total}

    def _debug(self, turn: Turn, memory: Allocation, history: Sequence[Message], history_tokens: int) -> dict[str, Any]:
        snippet_tokens = sum(self._tally.text(item.text) for item in memory.taken)
        return {
            "session_id": turn.session_id,
            "tenant_id": turn.tenant_id,
            "user_id": turn.user_id,
            "snippet_ids": [item.id for item in memory.taken],
            "snippet_count": len(memory.taken),
            "snippet_tokens": snippet_tokens,
            "history_count": len(history),
            "history_trimmed": len(turn.history) - len(history),
            "total_tokens": snippet_tokens + history_tokens,
        }

    def _content(self, message: Message) -> int:
        content = message["content"]
        return self._tally.text(content if type(content) is str else plain(content))


def _ends(turn: Turn) -> tuple[Message, Message]:
    """The first and the last message: always there.

    The system prompt goes out as it is: the application's own words, in which an address, for one, is meant to be.
    """
    return {"role": "system", "content": turn.system_prompt}, {"role": "user", "content": turn.user_message}


def _best(scored: Sequence[Candidate], wanted: int, threshold: float, refused: list[Receipt]) -> list[Candidate]:
    """The best of those that are similar enough; a memory may have ignored the threshold it was asked with."""
    best = []
    for one in ranked(scored):
        if one.base_score >= threshold:
            best.append(one)
        else:
            reason = f"similarity {one.base_score:.2f} is below {threshold:g}"
            refused.append(receipt(one.id, one, MEMORY, Outcome.DROPPED, reason))
    reason = f"not among the best {wanted}"
    refused.extend(receipt(one.id, one, MEMORY, Outcome.DROPPED, reason) for one in best[wanted:])
    return best[:wanted]


def _snippet(item: Item) -> dict[str, Any]:
    candidate = item.candidate or Candidate(item.id, item.text)
    return {
        "id": item.id,
        "text": item.text,
        "score": candidate.score,
        "base_score": candidate.base_score,
        "recency": candidate.recency,
        "metadata": dict(candidate.metadata),
    }
