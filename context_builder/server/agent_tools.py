"""Agents that speak the Model Context Protocol get tools and resources over the same services as the HTTP calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any, Final

import orjson
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from pydantic import AliasChoices, Field, ValidationError
from pydantic.alias_generators import to_camel
from redis.asyncio import Redis

from context_builder.concurrency import beside_loop
from context_builder.errors import CannotForget, DataRejected, PackageUnknown, SessionIdError
from context_builder.json_values import object_of, objects_of
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.request import MAX_BUDGET, ContextBuildRequest, Scope
from context_builder.memory.filter import LONGEST_NAME, memory_filter
from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.server.access.caller import Caller, Role
from context_builder.server.problem import Missing, Problem, answered, invalid
from context_builder.server.routes.memories import (
    LONGEST_QUERY,
    MOST_FORGOTTEN,
    NOTE,
    forget_memories,
    found_memories,
)
from context_builder.server.routes.sessions import correct_message, hand_over, rename_speaker, strike_message
from context_builder.server.routes.turns import MemoryScope, TurnRequest, built_turn, refusals
from context_builder.server.seen_session import SeenSession, first_seen, seen_session
from context_builder.server.services import Services
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.keys import SESSION_ID_RULE, validate_session_id
from context_builder.session.store.registry import RegisteredSession
from context_builder.tracing import current_trace

_SHORT: Final = ("id", "text", "kind", "speakers", "cites", "time")
"""Of a point, what is told where it is to be short."""

_SHORT_BYTES: Final = 1_900
"""Bytes of JSON that new points take together."""
_CUT: Final = 400
"""Characters of a point that is longer than all of that."""


NOT_REMEMBERED: Final = "the database cannot hold it, or what must not be kept cannot be taken out of it"


def _named(name: str, **described: Any) -> Any:
    """Return the field of a tool's argument, whose name is in camelCase as in HTTP calls; its Python name does too."""
    return Field(validation_alias=AliasChoices(to_camel(name), name), **described)


SessionName = Annotated[str, _named("session_id", description="The session's id, such as monday.")]
MessageName = Annotated[str, Field(description="The message's number, or its id such as id:12.")]
SessionNames = Annotated[
    tuple[str, ...], _named("session_ids", description="Sessions to search, by id; none means every session.")
]
PackageName = Annotated[str, _named("context_package_id", description="The package's id, such as cpk_01J….")]


class AgentTools:
    """Answers an agent's calls on behalf of the user that ``caller`` returns."""

    def __init__(self, services: Services, caller: Callable[[], Caller]) -> None:
        self._services = services
        self._caller = caller

    async def list_sessions(
        self, limit: Annotated[int, Field(ge=1, le=500, description="Maximum number of sessions.")] = 50
    ) -> dict[str, Any]:
        """List conversations, newest talk first: their ids, whether they run, and when somebody last spoke.

        One that is asleep runs again as soon as somebody speaks.
        """
        with _told():
            found = await self._sessions()
            listed = [
                {
                    "sessionId": one.session_id,
                    "status": one.status,
                    "asleep": one.asleep,
                    "lastActive": one.last_active,
                    "messages": one.messages,
                }
                for one in found[:limit]
            ]
            return {"sessions": listed, "total": len(found)}

    async def recent_points(
        self,
        session_id: SessionName,
        since: Annotated[
            int | None, Field(ge=0, description="Id of the newest point that you know; none means the newest points.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=50, description="Maximum number of points.")] = 10,
    ) -> dict[str, Any]:
        """Return what is new in a conversation's summary, in less than 2 kB: cheaper than its whole state.

        Ask again with `until` as `since` to get only what is new. `more` says how many points there are beyond these:
        newer ones with `since`, older ones without. A point that was changed comes again, under a new id.
        """
        with _told():
            state = await self._state(session_id)
            held = objects_of(object_of(state.get("rolling_summary")).get("points"))
            known = 0 if since is None else since
            points = sorted((one for one in held if _id(one) > known), key=_id, reverse=since is None)
            shown = _short(points[:limit])
            until = max((one["id"] for one in shown), default=known)
            return {"points": sorted(shown, key=_id), "until": until, "more": len(points) - len(shown)}

    async def search_memory(
        self,
        query: Annotated[str, Field(description="What to look for; empty for the newest.")] = "",
        limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of memories, best first.")] = 8,
        speaker: Annotated[str, Field(description="Who said it: a whole name.")] = "",
        session: Annotated[str, Field(description="Session in which it was said.")] = "",
        since: Annotated[str, Field(description="First day or moment, such as 2026-03-02.")] = "",
        until: Annotated[str, Field(description="Last day, or moment before which it was said.")] = "",
        kind: Annotated[tuple[str, ...], Field(description="Kinds of memory, such as message or point.")] = (),
    ) -> dict[str, Any]:
        """Find what was said, decided or written before that is like the query; an empty query finds the newest."""
        with _told():
            where = memory_filter(speaker=speaker, session=session, since=since, until=until, kinds=kind)
            wanted = MemoryQuery(query, limit, filter=where)
            found = await found_memories(self._services, self._may(Role.READER), wanted)
            return {"memories": [one.model_dump(mode="json", by_alias=True) for one in found]}

    async def remember(
        self,
        text: Annotated[
            str,
            Field(min_length=1, max_length=LONGEST_QUERY, description="What is to be remembered, in a sentence or so."),
        ],
        speaker: Annotated[str, Field(max_length=LONGEST_NAME, description="Who says so; none if nobody does.")] = "",
    ) -> dict[str, Any]:
        """Keep a note in the long-term memory, where searches and prompts find it; needs the role writer.

        What is said in a conversation is remembered anyway: send it there. The same note is kept once.
        """
        with _told():
            caller = self._may(Role.WRITER)
            if not (words := text.strip()):
                raise Problem(422, "invalid_request", "text: is empty")
            name = speaker.strip() or None
            digest = sha256(orjson.dumps([name, words])).hexdigest()[:32]
            note_id = f"{NOTE}:{digest}"
            note = Memory(note_id, words, kind=NOTE, speaker=name, time=datetime.now(UTC))
            try:
                await self._services.memory.remember(caller.tenant_id, [note])
            except DataRejected as error:
                raise Problem(422, "refused_data", f"the note is not remembered: {NOT_REMEMBERED}") from error
            return {"id": note_id}

    async def forget(
        self,
        ids: Annotated[
            tuple[str, ...],
            Field(
                min_length=1,
                max_length=MOST_FORGOTTEN,
                description="Memories to delete, by id as search_memory has it.",
            ),
        ],
    ) -> dict[str, Any]:
        """Delete memories, for good; needs the role admin. `strike_message` also deletes a message from its session."""
        with _told():
            caller = self._may(Role.ADMIN)
            try:
                forgotten = await forget_memories(self._services, caller, ids)
            except CannotForget:
                detail = "this memory store has no way to delete what it keeps; delete it there"
                raise Problem(409, "cannot_forget", detail) from None
            if unknown := [one for one in ids if one not in forgotten]:
                raise Problem(404, "not_found", f"{len(forgotten)} forgotten; there is no memory {', '.join(unknown)}")
            return {"forgotten": len(forgotten)}

    async def build_turn(
        self,
        session_id: SessionName,
        query: Annotated[str, Field(description="What the turn answers: the question, or what was said last.")],
        token_budget: Annotated[
            int, _named("token_budget", ge=1, le=MAX_BUDGET, description="Maximum tokens of the prompt.")
        ] = 4_000,
        user_id: Annotated[
            str, _named("user_id", description="Person whom the answer is for, and whose preferences count.")
        ] = "",
        project_id: Annotated[
            str, _named("project_id", description="Project whose documents take part; none means no documents.")
        ] = "",
        speaker: Annotated[str, Field(description="Include only this person's memories; a whole name.")] = "",
        since: Annotated[
            str, Field(description="Include only memories from this day or moment on, such as 2026-03-02.")
        ] = "",
        until: Annotated[
            str, Field(description="Include only memories up to the end of this day, or before this moment.")
        ] = "",
    ) -> dict[str, Any]:
        """Build the prompt of a conversation's next turn, as chat messages for a model, within the token budget.

        Summary, memories that fit the query, and the newest messages are in it. `memory` is ok, or says why memories
        are missing.
        """
        with _told(), refusals():
            await self._state(session_id)
            redis = await self._redis(session_id, Role.READER)
            scope = Scope(project_id=project_id) if project_id else None
            turn = TurnRequest(
                query=query,
                token_budget=token_budget,
                user_id=user_id or None,
                package_scope=scope,
                memories=MemoryScope(speaker=speaker, since=since, until=until),
            )
            built = await built_turn(session_id, turn, redis, self._services, self._caller())
            messages = [one for one in built.messages if one["content"]]  # without an empty system prompt
            return {
                "messages": messages,
                "tokensUsed": built.token_counts["total"],
                "memory": built.debug.get("memory", ""),
            }

    async def session_state(self, session_id: SessionName) -> dict[str, Any]:
        """Return a conversation's summary, newest messages, topics and keywords."""
        with _told():
            return await self._state(session_id)

    async def explain_point(
        self,
        session_id: SessionName,
        point_id: Annotated[
            int | None, _named("point_id", description="The point's id in the summary; none means all.")
        ] = None,
    ) -> dict[str, Any]:
        """Return points of a conversation's summary with the messages that each comes from."""
        with _told():
            await self._state(session_id)
            points = await (await self._session(session_id)).points()
            found = [one for one in points if point_id is None or one["id"] == point_id]
            if not found and point_id is not None:
                raise Problem(404, "not_found", f"the summary of {session_id} has no point {point_id}")
            return {"points": found}

    async def send_message(
        self,
        session_id: SessionName,
        text: Annotated[str, Field(description="What is said.")],
        speaker: Annotated[str, Field(description="Who says it.")] = "Consilience",
    ) -> dict[str, Any]:
        """Say something in a conversation; needs the role writer.

        With `unheard`, nobody runs a session of this name yet: the message waits until somebody does.
        """
        with _told():
            redis = await self._redis(session_id, Role.WRITER)
            message: JsonObject = {"speaker": speaker, "text": text, "timestamp": datetime.now(UTC).isoformat()}
            is_heard = await hand_over(self._services, self._caller(), redis, session_id, [message])
            return {"accepted": 1} | ({} if is_heard else {"unheard": True})

    async def correct_message(
        self,
        session_id: SessionName,
        message: MessageName,
        text: Annotated[str | None, Field(description="The right words; default: unchanged.")] = None,
        speaker: Annotated[str | None, Field(description="Who said it; default: unchanged.")] = None,
    ) -> dict[str, Any]:
        """Correct what was said in a conversation, or by whom; needs the role writer.

        Only what you are shown whole can be corrected, and not by a text with masks in place of words.
        """
        with _told():
            with _naming(message, session_id):
                client, seen = await self._revising(session_id)
                await correct_message(client, seen, message, text, speaker)
            return {"accepted": 1}

    async def rename_speaker(
        self,
        session_id: SessionName,
        old: Annotated[str, Field(description="What the speaker is called now.")],
        new: Annotated[str, Field(description="The name to call them, in everything said so far and from now on.")],
    ) -> dict[str, Any]:
        """Rename a speaker of a conversation, in everything said so far and from now on; needs the role writer."""
        with _told():
            client, _ = await self._revising(session_id)
            await rename_speaker(client, old, new)
            return {"accepted": 1}

    async def strike_message(self, session_id: SessionName, message: MessageName) -> dict[str, Any]:
        """Delete a message everywhere, with all that rests on it, for good; needs the role writer."""
        with _told():
            with _naming(message, session_id):
                client, _ = await self._revising(session_id)
                await strike_message(client, message)
            return {"accepted": 1}

    async def build_context(
        self,
        intent: Annotated[str, Field(description="What the context is for.")],
        token_budget: Annotated[int, _named("token_budget", description="Maximum tokens of the prompt.")] = 4_000,
        project_id: Annotated[
            str,
            _named("project_id", description="Project to search, with what is linked to it; none means everything."),
        ] = "",
        session_ids: SessionNames = (),
        pinned: Annotated[tuple[str, ...], Field(description="Refs of sources that must be in it.")] = (),
        task_id: Annotated[str, _named("task_id", description="Your task's id, for the record.")] = "",
        kinds: Annotated[
            tuple[str, ...],
            Field(description="Kinds to search by similarity, such as message; none means all."),
        ] = (),
        speaker: Annotated[str, Field(description="Of messages, include only this person's; a whole name.")] = "",
        since: Annotated[
            str, Field(description="Of messages, include only those from this day or moment on, such as 2026-03-02.")
        ] = "",
        until: Annotated[
            str, Field(description="Of messages, include only those up to the end of this day, or before this moment.")
        ] = "",
    ) -> dict[str, Any]:
        """Build the context for a task: what fits its intent and may be seen, within the token budget.

        ``prompt`` is its text for a model; ``sources`` say what is in it, and where each is from.
        """
        with _told():
            caller = self._may(Role.READER)
            where = memory_filter(speaker=speaker, since=since, until=until, kinds=kinds)
            narrowed = {"kinds": where.kinds, "speaker": speaker, "since": where.since, "until": where.until}
            request = ContextBuildRequest.model_validate(
                {
                    "intent": intent,
                    "token_budget": token_budget,
                    "scope": {"project_id": project_id, "session_ids": session_ids},
                    "pinned": pinned,
                    "task_id": task_id,
                    "retrieval": {"semantic": narrowed},
                }
            )
            return await self._package(await self._services.packages.build(caller.agent, request, current_trace()))

    async def get_context(self, context_package_id: PackageName) -> dict[str, Any]:
        """Return a package that was built before, as it may be seen now."""
        with _told():
            return await self._package(await self._served(context_package_id))

    async def rate_context(
        self,
        context_package_id: PackageName,
        outcome: Annotated[float | None, Field(ge=0, le=1, description="How well the task went with it.")] = None,
        helped: Annotated[tuple[str, ...], Field(max_length=1_000, description="Refs of sources that helped.")] = (),
        note: Annotated[str, Field(max_length=8_000, description="Why, in words.")] = "",
    ) -> dict[str, Any]:
        """Say how a package did and which of its sources helped, so that better ones are chosen; the latest counts.

        `notInPackage` names refs that are none of the package's, and of which nothing is noted.
        """
        with _told():
            agent = self._may(Role.READER).agent
            shares = dict.fromkeys(helped, 1.0)
            unknown = await self._services.packages.feedback(agent, context_package_id, outcome, shares, note)
            return {"noted": True, **({"notInPackage": unknown} if unknown else {})}

    async def state_resource(self, id: str) -> str:  # noqa: A002 (as it is called in the address)
        """Return a conversation's state."""
        try:
            state = await self.session_state(id)
            return await beside_loop(lambda: orjson.dumps(state).decode())
        except ToolError as error:
            raise ResourceNotFoundError(str(error)) from None

    async def package_resource(self, id: str) -> str:  # noqa: A002 (as it is called in the address)
        """Return a package."""
        try:
            with _told():
                return (await self._served(id)).json_text
        except ToolError as error:
            raise ResourceNotFoundError(str(error)) from None

    async def session_ids(self, most: int) -> list[str]:
        """Return the ids of the conversations that the caller may see, newest talk first."""
        with _told():
            return [one.session_id for one in (await self._sessions())[:most]]

    async def _sessions(self) -> list[RegisteredSession]:
        caller = self._may(Role.READER)
        found = await self._services.sessions.of_caller(caller)
        return await first_seen(self._services, caller, found, len(found))

    async def _served(self, package_id: str) -> ContextPackage:
        package, _ = await self._services.packages.get(self._may(Role.READER).agent, package_id)
        return package

    async def _package(self, package: ContextPackage) -> dict[str, Any]:
        fields: dict[str, Any] = await beside_loop(package.model_dump, mode="json", by_alias=True)
        return {**fields, "prompt": await self._services.packages.prompt(package)}

    def _may(self, needed: Role) -> Caller:
        caller = self._caller()
        if needed not in caller.roles:
            raise Problem(403, "forbidden", f"this needs the role {needed.value}")
        return caller

    async def _state(self, session_id: str) -> JsonObject:
        if (state := await (await self._session(session_id)).state()) is None:
            raise _no_session(session_id)
        return state

    async def _session(self, session_id: str) -> SeenSession:
        return await self._seen(session_id, await self._redis(session_id, Role.READER))

    async def _revising(self, session_id: str) -> tuple[SessionClient, SeenSession]:
        redis = await self._redis(session_id, Role.WRITER)
        seen = await self._seen(session_id, redis)
        client = SessionClient(redis, session_id)
        if not (await client.is_known() or await client.waiting()):
            raise _no_session(session_id)
        return client, seen

    async def _seen(self, session_id: str, redis: Redis) -> SeenSession:
        try:
            return await seen_session(self._services, self._caller(), session_id, redis)
        except Problem as problem:
            raise (_no_session(session_id) if problem.status == HTTPStatus.NOT_FOUND else problem) from None

    async def _redis(self, session_id: str, needed: Role) -> Redis:
        redis = await self._services.sessions.redis_of(self._may(needed), validate_session_id(session_id))
        if redis is None:
            raise _no_session(session_id)
        return redis


def _id(point: JsonObject) -> int:
    return int(point.get("id", 0))


def _short(points: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the first points, as many as are short together, but one at least, whose text is cut if need be."""
    shown: list[JsonObject] = []
    size = 0
    for one in points:
        told: JsonObject = {name: one[name] for name in _SHORT if name in one}
        size += len(orjson.dumps({"points": [told]}))
        if size > _SHORT_BYTES and shown:
            break
        shown.append(told if size <= _SHORT_BYTES else told | {"text": str(told["text"])[:_CUT] + "…", "cites": []})
    return shown


def _no_session(session_id: str) -> Problem:
    return Problem(404, "not_found", f"there is no session {session_id}; list_sessions names those there are")


@contextmanager
def _naming(message: str, session_id: str) -> Iterator[None]:
    """Name the message that is not there."""
    try:
        yield
    except Problem as problem:
        if problem.status != HTTPStatus.NOT_FOUND or problem.detail != Missing.MESSAGE:
            raise
        raise Problem(404, "not_found", f"there is no message {message} in {session_id}") from None


@contextmanager
def _told() -> Iterator[None]:
    """Tell the agent what a call of ours would answer, and nothing else."""
    try:
        yield
    except Problem as problem:
        raise ToolError(problem.detail) from None
    except SessionIdError:
        raise ToolError(f"a session id is {SESSION_ID_RULE}") from None
    except ValidationError as error:
        raise ToolError(invalid(error.errors()).detail) from None
    except PackageUnknown as error:
        raise ToolError(str(error)) from None
    except Exception as error:  # noqa: BLE001  # whoever asked is told what a call would answer
        raise ToolError(answered(error).detail) from None
