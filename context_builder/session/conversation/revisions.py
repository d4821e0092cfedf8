"""Revisions change all of a conversation: corrected and struck messages, and renamed speakers
(``docs/explanation/corrections.md``).

What archive and memory are to be told is collected until the next commit, so that many revisions make one summary row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from context_builder.analysis.analyst import DOMAIN_TEXT
from context_builder.analysis.chunking import excerpt
from context_builder.clock import Instant, epoch
from context_builder.quoting import LONGEST_NAME
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.domains import DomainTracker
from context_builder.session.conversation.memory_batch import (
    Amendment,
    MemoryBatch,
    StruckMessage,
    memory_batch,
    message_id,
)
from context_builder.session.conversation.responses import Responses
from context_builder.session.conversation.summary_scheduler import SummaryScheduler
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage, blank
from context_builder.session.messages.message import Message
from context_builder.session.messages.revision import Correction, Revision, SpeakerRename, Strike
from context_builder.session.summary.citation import SOURCE_CHARS, CitedMessage
from context_builder.session.summary.cited_change import CitedChange
from context_builder.session.summary.ledger import LedgerUpdate
from context_builder.session.summary.point import Point
from context_builder.session.summary.rolling_summary import Summary

_NOTHING: Final = LedgerUpdate()

MOST_STRUCK: Final = 100
"""Newest struck messages whose ids viewers of the session are told."""

MOST_NAMES: Final = 500
"""Most renamed speakers that are remembered, the newest."""


@dataclass(slots=True)
class _Notices:
    """Collects what archive and memory are to be told of; summaries from the number ``since`` on no longer hold."""

    update: LedgerUpdate = _NOTHING
    amended: dict[str, Amendment] = field(default_factory=dict)
    struck: list[StruckMessage] = field(default_factory=list)
    since: int | None = None

    def supersede(self, since: int | None) -> None:
        if since is not None:
            self.since = since if self.since is None else min(self.since, since)


class Revisions:
    """Applies revisions; ``names`` are what speakers are called, by the names that they are sent with.

    ``pending_corrections`` are of messages that may wait in the pending list, by id, until they are summarized.
    ``struck`` are the ids of the newest messages that were struck.
    """

    def __init__(
        self,
        session_id: str,
        rules: SessionConfig,
        buffer: Buffer,
        responses: Responses,
        summary: Summary,
        domain_tracker: DomainTracker,
        scheduler: SummaryScheduler,
    ) -> None:
        self.names: dict[str, str] = {}
        self.pending_corrections: dict[int, tuple[str | None, str]] = {}
        self.struck: deque[int] = deque(maxlen=MOST_STRUCK)
        self._session_id = session_id
        self._rules = rules
        self._buffer = buffer
        self._responses = responses
        self._summary = summary
        self._domain_tracker = domain_tracker
        self._scheduler = scheduler
        self._told = _Notices()
        self._meanwhile: dict[int, CitedChange] = {}
        self._renamed_meanwhile: dict[str, str] = {}

    @property
    def superseded_since(self) -> int | None:
        """Return the number of the first summary that no longer holds since the last commit, if any does."""
        return self._told.since

    def name_of(self, speaker: str) -> str:
        """Return what a speaker is called, who is sent with this name."""
        return self.names.get(speaker, speaker)

    def as_corrected(self, entries: Sequence[BufferedMessage]) -> Sequence[BufferedMessage]:
        """Return entries of the pending list after what was corrected since they went there."""
        for entry in entries:
            was = CitedMessage.of(entry)
            text, speaker = self.pending_corrections.get(entry.id, (None, entry.speaker))
            if not (entry.is_blank or entry.consilience) and entry.revise(text, self.name_of(speaker)):
                self._note_meanwhile(_as_changed(was, CitedMessage.of(entry)))
        return entries

    def apply(self, revisions: Iterable[Revision], now: Instant, changes: Changes) -> list[BufferedMessage]:
        """Apply revisions, and return the entries of the buffer that say something else now."""
        corrections: dict[int, Correction] = {}
        strikes: list[Strike] = []
        renames: list[SpeakerRename] = []
        revised: dict[int, BufferedMessage] = {}
        for one in revisions:
            if isinstance(one, Correction):
                before = corrections.get(one.id)
                corrections[one.id] = replace(one, text=before.text) if before and one.text is None else one
            elif isinstance(one, Strike):
                strikes.append(one)
            else:
                renames.append(one)
        if renames:
            revised |= {entry.id: entry for entry in self._rename(renames, now, changes)}
        revised |= {entry.id: entry for entry in self._correct(corrections.values(), now, changes)}
        if strikes:
            self._strike(strikes, now, changes)
        for strike in strikes:
            revised.pop(strike.id, None)
        changes.revised = True
        changes.mark()
        return [*revised.values()]

    def summarized(
        self, entries: Sequence[BufferedMessage], update: LedgerUpdate, now: Instant, changes: Changes
    ) -> LedgerUpdate:
        """Return what a summary of entries comes to after what was corrected while it was made."""
        for entry in entries:
            if self.pending_corrections.pop(entry.id, None) is not None:
                changes.drop_correction(entry.id)
        meanwhile, self._meanwhile = self._meanwhile, {}
        if meanwhile:
            written = {point.id for point in update.written}
            earlier = self._summary.sources
            later = self._summary.correct(meanwhile, now, written)
            self._summarize_again(_retracted(later), earlier, {entry.id: entry for entry in entries}, changes)
            update = update.followed_by(later)
        renamed, self._renamed_meanwhile = self._renamed_meanwhile, {}
        if renamed:
            update = update.followed_by(self._summary.rename(renamed, now))
        return update

    def given_up(self) -> None:
        """Note that no summary is being made any more."""
        self._meanwhile, self._renamed_meanwhile = {}, {}

    def flush(self, topic: Sequence[str], changes: Changes) -> None:
        """Put what archive and memory are to be told into ``changes``."""
        told, self._told = self._told, _Notices()
        if told.since is not None:
            row = self._summary.next_row(self._session_id, topic, told.since, strikes=bool(told.struck))
            if self._rules.archives:
                changes.archive(row)
            changes.put_summary(self._summary)
        if not self._rules.feed_memory:
            return
        points = self._summary.ledger.points
        update = LedgerUpdate([point for point in told.update.written if point in points], told.update.replaced)
        made = memory_batch(self._session_id, (), update, points, {})
        revised = tuple(told.amended.values()), tuple(told.struck)
        if made.memories or made.superseded or any(revised):
            changes.remember(MemoryBatch(self._session_id, made.memories, made.superseded, *revised))

    def _correct(self, corrections: Iterable[Correction], now: Instant, changes: Changes) -> list[BufferedMessage]:
        revised: list[BufferedMessage] = []
        cited: dict[int, CitedChange] = {}
        spoken_of: dict[int, BufferedMessage] = {}
        for one in corrections:
            speaker = self.name_of(one.speaker)
            self._responses.revise(one.id, one.text, changes)
            if (entry := self._buffer.entries.get(one.id)) is not None:
                was = CitedMessage.of(entry)
                if entry.revise(one.text, speaker):
                    revised.append(entry)
                    self._entry_revised(entry, was, changes)
                continue
            self._correct_outside(one, speaker, changes)
            if one.text is not None and (one.id in self._summary.sources or not self._buffer.pending):
                spoken_of[one.id] = _entry(one, one.text, speaker, now)
            if (old := self._summary.sources.get(one.id)) is not None and (change := _change(old, one, speaker)):
                cited[one.id] = change
                self._note_meanwhile(change)
        earlier, update = self._revise_points(lambda: self._summary.correct(cited, now), changes)
        uncited = [entry for entry_id, entry in spoken_of.items() if entry_id not in earlier]
        self._summarize_again(_retracted(update), earlier, spoken_of, changes, also=uncited)
        if update.changes_anything:
            for entry_id in cited:
                self._told.supersede(self._summary.first_seq(entry_id))
        return revised

    def _entry_revised(self, entry: BufferedMessage, was: CitedMessage, changes: Changes) -> None:
        self._buffer.revised(entry)
        changes.put(entry)
        self._domain_tracker.restate()
        self._note_meanwhile(_as_changed(was, CitedMessage.of(entry)))

    def _note_meanwhile(self, change: CitedChange) -> None:
        if self._scheduler.running:
            first = self._meanwhile.get(change.old.id, change)
            differ = first.words_differ or change.words_differ
            self._meanwhile[change.old.id] = CitedChange(first.old, change.new, differ)

    def _correct_outside(self, one: Correction, speaker: str, changes: Changes) -> None:
        """Correct a message that has left the buffer: in the pending list, where it waits there, and in the memory."""
        known_as = message_id(self._session_id, one.origin)
        before = self._told.amended.get(known_as)
        text = before.text if before and one.text is None else one.text
        self._told.amended[known_as] = Amendment(known_as, text, speaker)
        if self._buffer.pending or self._scheduler.running:
            earlier = self.pending_corrections.get(one.id, (None, speaker))
            self.pending_corrections[one.id] = (earlier[0] if one.text is None else one.text, speaker)
            changes.put_correction(one.id, self.pending_corrections[one.id])
        for entry in self._scheduler.waiting_again(one.id):
            entry.revise(one.text, speaker)
            changes.put_again(entry)
        departed = [entry for entry in self._buffer.departed if entry.id == one.id]
        for entry in departed:
            short = None if one.text is None else excerpt(one.text, DOMAIN_TEXT)
            entry.revise(short, speaker[:LONGEST_NAME])
        if departed:
            changes.rewrite_departed(self._buffer)
            self._domain_tracker.restate()

    def _strike(self, strikes: Sequence[Strike], now: Instant, changes: Changes) -> None:
        texts = {strike.id: self._taken_out(strike, now, changes) for strike in strikes}
        changes.rewrite_departed(self._buffer)
        self.given_up()
        earlier, update = self._revise_points(lambda: self._summary.strike(texts, now), changes)
        self._summarize_again(_retracted(update), earlier, {}, changes, without=texts.keys())
        points = memory_batch(self._session_id, (), update, (), {}).superseded
        for strike in strikes:
            known_as = message_id(self._session_id, strike.origin)
            struck = StruckMessage(known_as, strike.id, points)
            points = ()  # which are gone with the first
            self._told.amended.pop(known_as, None)
            self._told.struck.append(struck)
            self.struck.append(strike.id)
            changes.struck.append((struck, texts[strike.id]))

    def _taken_out(self, strike: Strike, now: Instant, changes: Changes) -> str:
        """Take a message out of all but the summary, and return what it said, as far as that is known."""
        departed = [entry for entry in self._buffer.departed if entry.id == strike.id]
        source = self._summary.sources.get(strike.id)
        entry = self._buffer.strike(strike.id)
        if entry is not None:
            changes.drop(entry)
        else:
            self._told.supersede(self._summary.first_seq(strike.id))
            if self._buffer.pending:
                changes.blanks.append(blank(strike.id, now))
        self._responses.strike(strike.id, changes)
        if self.pending_corrections.pop(strike.id, None) is not None:
            changes.drop_correction(strike.id)
        if self._scheduler.strike(strike.id):
            changes.drop_again(strike.id)
        said = entry or next(iter(departed), None) or source
        text = said.text if said else ""
        self._domain_tracker.strike(text)
        return text

    def _rename(self, renames: Iterable[SpeakerRename], now: Instant, changes: Changes) -> list[BufferedMessage]:
        said: dict[str, str] = {}
        for one in renames:
            self.names = _renamed_further(self.names, one.old, one.new) | {one.old: one.new}
            said = {one.old: one.new} | _renamed_further(said, one.old, one.new)
            if self._rules.feed_memory:  # each alone, which may be told again, and before what has the new names
                changes.remember(MemoryBatch(self._session_id, renamed=((one.old, one.new),)))
        for known, amended in self._told.amended.items():
            self._told.amended[known] = replace(amended, speaker=said.get(amended.speaker, amended.speaker))
        called = {name: called for name, called in self.names.items() if name != called}
        self.names = dict([*called.items()][-MOST_NAMES:])
        if self._scheduler.running:
            meanwhile = {name: said.get(called, called) for name, called in self._renamed_meanwhile.items()}
            self._renamed_meanwhile = said | meanwhile
        revised: list[BufferedMessage] = []
        for entry in [*self._buffer.ordered()]:
            was = CitedMessage.of(entry)
            if entry.speaker in said and not entry.consilience and entry.revise(speaker=said[entry.speaker]):
                revised.append(entry)
                self._entry_revised(entry, was, changes)
        shortened = {old[:LONGEST_NAME]: new for old, new in reversed(said.items())}
        for departed in (*self._buffer.departed, *self._scheduler.all_waiting_again()):
            if departed.speaker in shortened:
                departed.revise(speaker=shortened[departed.speaker])
        changes.rewrite_departed(self._buffer)
        for entry in self._scheduler.to_summarize_again:
            changes.put_again(entry)
        _, update = self._revise_points(lambda: self._summary.rename(said, now), changes)
        if update.changes_anything:
            self._told.supersede(1)
        return revised

    def _revise_points(
        self, revise: Callable[[], LedgerUpdate], changes: Changes
    ) -> tuple[Mapping[int, CitedMessage], LedgerUpdate]:
        """Return the messages that points cited before, and what is otherwise now."""
        earlier = self._summary.sources
        update = revise()
        changes.replace_sources(earlier, self._summary.sources)
        if update.changes_anything:
            changes.put_summary(self._summary)
        self._told.update = self._told.update.followed_by(update)
        return earlier, update

    def _summarize_again(
        self,
        retracted: Iterable[Point],
        cited: Mapping[int, CitedMessage],
        corrected: Mapping[int, BufferedMessage],
        changes: Changes,
        *,
        also: Iterable[BufferedMessage] = (),
        without: Set[int] = frozenset(),
    ) -> None:
        """Have the messages of retracted points summarized again, as far as they are at hand: corrected, or cited."""
        entries = {entry.id: entry for entry in also}
        for point in retracted:
            for entry_id in point.ids:
                source = cited.get(entry_id)
                if entry_id in corrected:
                    entries[entry_id] = corrected[entry_id]
                elif source is not None and entry_id not in without:
                    entries[entry_id] = _of_cited(source, point)
        for entry in entries.values():
            self._scheduler.summarize_again(entry)
            changes.put_again(entry)


def _renamed_further(names: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return names that speakers have, by the old ones, once who has the name ``old`` gets a new one."""
    return {name: new if called == old else called for name, called in names.items()}


def _retracted(update: LedgerUpdate) -> list[Point]:
    """Return the points whose place no other took."""
    rewritten = {known for point in update.written for known, _ in point.merges}
    return [point for point in update.replaced if point.id not in rewritten]


def _change(old: CitedMessage, correction: Correction, speaker: str) -> CitedChange | None:
    """Return how a cited message changes; None where it says the same."""
    text = correction.text
    new = replace(old, speaker=speaker[:SOURCE_CHARS])
    if text is not None:
        new = replace(new, text=text[:SOURCE_CHARS], clipped=len(text) > SOURCE_CHARS)
    if new == old and (text is None or not new.clipped):
        return None
    return CitedChange(old, new, text is not None and (new.clipped or new.text != old.text))


def _as_changed(was: CitedMessage, now: CitedMessage) -> CitedChange:
    return CitedChange(was, now, was.text != now.text or (was.clipped and was.speaker == now.speaker))


def _entry(correction: Correction, text: str, speaker: str, now: Instant) -> BufferedMessage:
    message = Message(
        text=text,
        speaker=speaker,
        number=correction.number,
        timestamp=correction.timestamp,
        time=correction.time,
        identity=b"",
        consilience=correction.consilience,
    )
    entry = BufferedMessage(correction.id, message, now)
    entry.origin = correction.origin
    return entry


def _of_cited(source: CitedMessage, point: Point) -> BufferedMessage:
    """Return a cited message as one to be summarized; it was said when the point says, where its time is not told.

    Of a long one only the beginning and the quotes are at hand.
    """
    quotes = [quote.text for quote in point.evidence if quote.id == source.id] if source.clipped else []
    time = epoch(source.timestamp, near=point.time)
    said_at = Instant(point.time if time is None else time, 0.0)
    message = Message(
        text=" … ".join([source.text, *quotes]),
        speaker=source.speaker,
        number=source.number,
        timestamp=source.timestamp,
        time=said_at.wall,
        identity=b"",
        consilience=source.consilience,
    )
    return BufferedMessage(source.id, message, said_at)
