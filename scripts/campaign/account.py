"""One session's account: what was sent, where every message is, and what faults took that nobody can give back."""

from __future__ import annotations

import random
from dataclasses import dataclass

from context_builder.session.keys import RECEIVERS, Keys
from context_builder.session.store.dead_letters import DeadLetters
from scripts.campaign.audit import Excused, Places, judge, judge_archive, judge_memory
from scripts.campaign.listener import Listener, Sent
from scripts.campaign.redis_host import RedisHost, client_of
from scripts.campaign.tally import Tally
from scripts.campaign.tokens import tokens_in
from scripts.campaign.world import World


def hostile_name(begins: str, number: int) -> str:
    """Return a session's id as some listener may write it."""
    forms = ("{}-{}", "{}:{}", "{}@{}.org", "flöte-{}-{}", "वर्ग:{}:{}", "{}:{}:input")
    return forms[number % len(forms)].format(begins, number)


@dataclass(frozen=True)
class FallBack:
    """Where every message was ``before`` Redis fell back and ``after``."""

    before: Places
    after: Places

    @property
    def unread(self) -> set[str]:
        """What no daemon had committed."""
        return {*self.before.waiting} - {*self.after.waiting, *self.after.taken_in}

    @property
    def missing(self) -> set[str]:
        """Everything that Redis has not any more."""
        return {*self.before.waiting, *self.before.taken_in} - {*self.after.waiting, *self.after.taken_in}


class Account:
    """A session, its listener, and what is known of its messages; ``crowded`` sessions do without the model."""

    def __init__(
        self, world: World, host: RedisHost, tally: Tally, session_id: str, talk: random.Random, *, crowded: bool
    ) -> None:
        self.world = world
        self.host = host
        self.tally = tally
        self.session_id = session_id
        self.keys = Keys(session_id)
        self.crowded = crowded
        self.excused = Excused()
        self._talk = talk

    def open_listener(self) -> None:
        """Let somebody push."""
        self.listener = Listener(client_of(self.host.link.port), self.session_id, self._talk)

    async def places(self) -> Places:
        """Where every message is. What a summary does not name is in the memory word for word, or on its way there."""
        while True:
            places = (await Places.read(self.host.redis, self.session_id)).of_messages(self.listener.sent)
            if not (self.crowded or places.degraded > 0):
                return places
            memories = await self.world.remembered(self.session_id)
            if (await Places.read(self.host.redis, self.session_id)).received == places.received:
                sent = self.listener.sent
                memories = [(kind, _in_roots(text, sent)) for kind, text in memories]
                return places.with_memories(memories, self.excused.not_in_redis(self.listener.sent, places))
            # Messages that were taken in meanwhile may be among the memories.

    async def is_vague(self) -> bool:
        """Whether its summaries do not name all their messages, so that what Redis has of them cannot be told."""
        return self.crowded or (await self.places()).degraded > 0

    async def audit(self, context: str) -> Places:
        """Look for every message acknowledged until now."""
        before = self.listener.sent.at_present()
        places = await self.places()
        if places.is_being_published:  # which after a fall-back takes a second commit
            await self.published_again()
            places = await self.places()
        findings = judge(places, before.acknowledged, before, self.excused)
        self.tally.find(self.session_id, findings, context)
        return places

    async def published_again(self) -> None:
        """Wait until the state is published anew."""
        raise NotImplementedError

    def fell_back(self, before: Places, after: Places) -> FallBack:
        """Redis has come back without its last moments; count what it lacks."""
        fall = FallBack(before, after)
        self.tally.fell_back += len(fall.missing)
        return fall

    async def someone_else_goes_on(self, fall: FallBack) -> None:
        """What Redis has not any more is gone; what had been summarized of it stays in archive and memory."""
        self.excused.summaries += fall.before.summary_seq - fall.after.summary_seq
        self.excused.taken_in |= fall.missing & {*fall.before.taken_in}
        self.excused.fell_back |= {*fall.before.taken_in} - {*fall.after.taken_in}
        sent = self.listener.sent
        read_again = {*fall.before.taken_in} & {*fall.after.waiting}
        self.excused.remembered_again |= read_again.difference(delivery.token for delivery in sent.deliveries)
        await self.listener.repeat(sent.take_back(fall.missing))

    async def left(self) -> int:
        """How much there is to do until all is summarized, archived and remembered."""
        return (await Places.read(self.host.redis, self.session_id)).left

    async def deliver_what_was_refused(self) -> None:
        await self.world.refuse_nothing(self.session_id)
        for receiver in RECEIVERS:
            letters = DeadLetters(self.host.redis, self.session_id, receiver)
            for letter in await letters.all():
                self.tally.refused += await letters.requeue(letter)

    async def close(self, places: Places) -> None:
        """Compare archive and memory with ``places``, once everything is in all of them, and count the session."""
        rows = await self.world.archived(self.session_id)
        named = not (self.crowded or places.degraded > 0)
        found = judge_archive(places, rows, self.listener.sent, named=named, excused=self.excused)
        self.tally.find(self.session_id, found, "archiving")
        memories = await self.world.remembered(self.session_id)
        found = judge_memory(places, memories, self.listener.sent, named=named, excused=self.excused)
        self.tally.find(self.session_id, found, "remembering")
        self.tally.close_session(self.listener.sent, places.dead.total(), len(rows), places.degraded)


def _in_roots(text: str, sent: Sent) -> str:
    """A memory's text, with the token of the message instead of that of its correction."""
    return " ".join(sent.root(token) for token in tokens_in(text))
