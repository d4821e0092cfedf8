"""From a turn and what its memories gave to messages that fit: pure, so the same input gives the same prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from context_builder.assembly.built_context import BuiltContext
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.fit import Part, fit
from context_builder.assembly.fuse import fused
from context_builder.assembly.govern import Governor
from context_builder.assembly.health import HealthState
from context_builder.assembly.history import HISTORY, History
from context_builder.assembly.phases import Metrics, phase
from context_builder.assembly.query import PLANS, kind_of
from context_builder.assembly.receipt import Outcome, Receipt, receipt, receipts_of
from context_builder.assembly.rules import AssemblyRules
from context_builder.assembly.salience import ranked, salient
from context_builder.assembly.section import Block, Dialogue, Item, Section, listed, numbered
from context_builder.assembly.tally import REPLY_PRIMING, Message, Tally, plain
from context_builder.assembly.turn import Turn

MEMORY: Final = "memory"
SUMMARY: Final = "summary"
USER: Final = "user"
HEADING: Final = "Relevant memory:"
SUMMARY_HEADING: Final = "Conversation so far:"

ORDER: Final = (MEMORY, SUMMARY, HISTORY)
"""What is kept first, after the system prompt and the user's message, unless the kind of query chooses."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A context; what did not fit into it of the history, oldest first; the tokens that competed."""

    context: BuiltContext
    trimmed: Sequence[Message]
    competing_tokens: int


class TurnPipeline:
    """fuse → rank → govern → fit → assemble."""

    def __init__(self, rules: AssemblyRules, tally: Tally, governor: Governor, metrics: Metrics) -> None:
        self._rules = rules
        self._tally = tally
        self._governor = governor
        self._metrics = metrics

    def run(
        self, turn: Turn, gathered: Sequence[Sequence[Candidate]], *, state: HealthState, limit: int, now: datetime
    ) -> Assembled:
        """Raises :class:`~context_builder.errors.TokenLimitExceeded` when system prompt and message alone are over."""
        metrics = self._metrics
        refused: list[Receipt] = []
        rules, order = self._planned(turn)
        with phase("salience", metrics.time_salience()):
            scored = salient(fused(gathered), now, rules)
        with phase("ranking", metrics.time_ranking()):
            best = _best(scored, self._rules.memories_wanted(state), refused)
        with phase("redaction", metrics.time_redaction()):
            shown: dict[str, list[Item]] = {}
            for name in sorted((MEMORY, SUMMARY), key=order.index):
                offered = best if name == MEMORY else turn.summary
                shown[name] = self._shown(name, _untold(name, offered, shown, refused), refused)
            system, user = _ends(turn)
            if turn.altered:
                refused.append(
                    Receipt(USER, USER, Outcome.WITHHELD if turn.withheld else Outcome.REDACTED, turn.altered)
                )
        with phase("tokenisation", metrics.time_tokenisation()):
            ends = self._tally.message(system) + self._tally.message(user) + REPLY_PRIMING
            history = History(turn.history, self._governor)
            sections = self._sections(shown, history)
            parts = fit([sections[name] for name in order], required=ends, limit=limit, choose=self._rules.choose)
        with phase("prompt", metrics.time_prompt()):
            return self._assembled(
                turn,
                (system, user),
                parts,
                history,
                refused,
                lambda more: self.run(turn, gathered, state=state, limit=limit + more, now=now).context,
            )

    def _shown(self, section: str, candidates: Sequence[Candidate], refused: list[Receipt]) -> list[Item]:
        shown = []
        for candidate in candidates:
            ruled = self._governor.candidate(candidate)
            if ruled.withheld:
                refused.append(receipt(candidate.id, candidate, section, Outcome.WITHHELD, ruled.altered))
            else:
                one = ruled.value
                shown.append(Item(one.id, one.text, one.score, candidate=one, altered=ruled.altered))
        return shown

    def _planned(self, turn: Turn) -> tuple[AssemblyRules, tuple[str, ...]]:
        """The rules and the order of sections; where that is set, as the kind of the turn's message wants them."""
        if not self._rules.by_query:
            return self._rules, ORDER
        plan = PLANS[kind_of(turn.user_message)]
        similarity, recency = plan.similarity_weight, plan.recency_weight
        return replace(self._rules, similarity_weight=similarity, recency_weight=recency), plan.order

    def _sections(self, shown: Mapping[str, Sequence[Item]], history: History) -> dict[str, Section]:
        known = shown[SUMMARY]
        return {
            MEMORY: Block(MEMORY, HEADING, shown[MEMORY], self._tally, entry=numbered),
            SUMMARY: Block(SUMMARY, SUMMARY_HEADING, known, self._tally, entry=listed, backwards=True),
            HISTORY: Dialogue(HISTORY, history, self._tally),
        }

    def _assembled(
        self,
        turn: Turn,
        ends: tuple[Message, Message],
        parts: dict[str, Part],
        past: History,
        refused: Sequence[Receipt],
        fit_again: Callable[[int], BuiltContext],
    ) -> Assembled:
        memory, known, spoken = (parts[name] for name in ORDER)
        history = spoken.section.messages(spoken.taken)
        block = memory.section.messages(memory.taken)
        summary = known.section.messages(known.taken)
        messages = [ends[0], *summary, *history, *block, ends[1]]
        contents = {"system": ends[:1], "history": history, "snippets": block, "user": ends[1:]}
        counts = self._counts(
            contents | ({"summary": summary} if turn.summary else {}),
            self._tally.prompt(ends) + sum(part.tokens for part in parts.values()),
        )
        withheld = sum(one.outcome is Outcome.WITHHELD for one in refused) + sum(one.withheld for one in spoken.taken)
        context = BuiltContext(
            system_prompt=turn.system_prompt,
            messages=messages,
            token_counts=counts,
            debug=_debug(turn, memory, history, counts) | {"withheld": withheld},
            snippets=[_snippet(item) for item in memory.taken],
            history=history,
            write_receipts=lambda: [
                *receipts_of(memory), *refused, *receipts_of(known), *receipts_of(spoken), *past.receipts()
            ],
            fit_again=fit_again,
        )  # fmt: skip
        left = sum(part.section.cost(item) for part in parts.values() for item, _ in part.left)
        return Assembled(
            context,
            past.before(len(spoken.taken)),
            counts["total"] + left + sum(map(self._tally.message, past.unseen)),
        )

    def _counts(self, contents: Mapping[str, Sequence[Message]], total: int) -> dict[str, int]:
        """Tokens by what they are for."""
        counts = {name: sum(map(self._content, messages)) for name, messages in contents.items()}
        return counts | {"overhead": total - sum(counts.values()), "total": total}

    def _content(self, message: Message) -> int:
        content = message["content"]
        return self._tally.text(content if type(content) is str else plain(content))


def _ends(turn: Turn) -> tuple[Message, Message]:
    """The first and the last message: always there.

    The system prompt goes out as it is: the application's own words, in which an address, for one, is meant to be.
    """
    return {"role": "system", "content": turn.system_prompt}, {"role": "user", "content": turn.user_message}


def _best(scored: Sequence[Candidate], wanted: int, refused: list[Receipt]) -> list[Candidate]:
    best = ranked(scored)
    reason = f"not among the best {wanted}"
    refused.extend(receipt(one.id, one, MEMORY, Outcome.DROPPED, reason) for one in best[wanted:])
    return best[:wanted]


def _untold(
    section: str, offered: Sequence[Candidate], shown: Mapping[str, Sequence[Item]], refused: list[Receipt]
) -> Sequence[Candidate]:
    """What the sections before this one, which have the room first, do not tell already."""
    told = {name for items in shown.values() for item in items for name in (item.id, item.text)}
    if not told:
        return offered
    reason = f"told by the {' and the '.join(shown)}"
    twice = [one for one in offered if one.id in told or one.text in told]
    refused.extend(receipt(one.id, one, section, Outcome.DROPPED, reason) for one in twice)
    return [one for one in offered if one not in twice]


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


def _debug(turn: Turn, memory: Part, history: Sequence[Message], counts: dict[str, int]) -> dict[str, Any]:
    return {
        "session_id": turn.session_id,
        "tenant_id": turn.tenant_id,
        "snippet_ids": [item.id for item in memory.taken],
        "snippet_count": len(memory.taken),
        "snippet_tokens": counts["snippets"],
        "history_count": len(history),
        "history_trimmed": len(turn.history) - len(history),
        "total_tokens": counts["total"],
    }
