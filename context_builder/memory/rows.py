"""Memories are converted here to and from the rows of the SQL functions.

The language of a text is told by its script, or by the commonest words of languages in Latin letters. Words are taken
to their stems in that language, so that "Häuser" finds "Haus". It is a guess from two common words: of a text without,
the language is not known, and its stems are English's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from context_builder.clock import in_utc
from context_builder.memory.memory import Memory, MemoryFeedback, MemoryFilter, Rating, SearchResult

ENGLISH: Final = "english"

_SAMPLE: Final = 2_000
"""Characters of a text that are looked at."""

_ENOUGH: Final = 2
"""Common words that tell a language."""

_WORD: Final = re.compile(r"[^\W\d_]+")

_SCRIPTS: Final = (
    ("russian", re.compile("[\u0400-\u04ff]")),
    ("greek", re.compile("[\u0370-\u03ff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("tamil", re.compile("[\u0b80-\u0bff]")),
)

_COMMON: Final[Mapping[str, str]] = {
    ENGLISH: "the and of to in is that it for was with as be this are have not you at by from or we they but what will",
    "german": "der die das und ist nicht ein eine zu den von mit auf für im sich wir ich sie auch wird dass wie noch",
    "french": "le la les des et est une du que pour pas dans qui sur nous vous ce au avec plus sont il elle mais ne",
    "spanish": "el los las y que es una por con para no se del lo como más pero su al está son hay qué muy este",
    "italian": "il lo gli di che è una per non con del della sono si come anche ma più nel alla dei questo ha ho le",
    "portuguese": "o os as e que é uma por com para não se do da em como mais mas no na ao são dos foi está",
    "dutch": "de het een en van is dat niet op te zijn voor met die er aan ook als maar om wij ik bij naar wordt",
    "danish": "og det er en at den til på for ikke af med de der har som jeg vi også men blev hvad kan et skal",
    "swedish": "och det är en att den till på för inte av med de som har jag vi också men ett om var kan ska så",
    "norwegian": "og det er en at den til på for ikke av med de som har jeg vi også men ble hva kan et skal å",
    "finnish": "ja on ei että se hän oli mutta kun niin myös ovat tämä joka kuin sen olla me voi vain nyt jos",
    "hungarian": "az és hogy nem is egy van meg ez azt de csak már vagy mint volt lesz amit ha még ki el kell",
    "romanian": "și este nu în de la cu pe un o care mai să din sunt pentru ce au fost dar era sau al ca",
    "turkish": "ve bir bu da de için ile çok ne olarak daha var gibi ama en değil olan kadar sonra mi biz ben o",
    "indonesian": "yang dan di ini itu dengan untuk tidak dari dalam akan pada ada juga kami saya ke karena bisa atau",
}
"""Some of the commonest words of each language."""

_LANGUAGES: Final = {
    word: tuple(name for name, words in _COMMON.items() if word in words.split())
    for word in {word for words in _COMMON.values() for word in words.split()}
}


def language_of(text: str) -> str | None:
    """Return the language of a text as PostgreSQL calls its text search configuration; None where it is not known."""
    sample = text[:_SAMPLE]
    if not sample.isascii():
        for name, letters in _SCRIPTS:
            if len(letters.findall(sample)) * 2 > len(sample.replace(" ", "")):
                return name
    votes = Counter(name for word in _WORD.findall(sample.casefold()) for name in _LANGUAGES.get(word, ()))
    ranked = votes.most_common(2)
    if not ranked or ranked[0][1] < _ENOUGH:
        return None
    (first, most), *others = ranked
    if others and others[0][1] == most and ENGLISH in (first, others[0][0]):
        return ENGLISH
    return first


Row = dict[str, Any]

KEY_CHARS: Final = 200
"""Longest name that is a key as it stands: PostgreSQL refuses rows whose index entries exceed some 2,700 bytes."""


def storable(value: Any) -> Any:
    """Return ``value`` as PostgreSQL's JSON holds it: no NUL, no half of a surrogate pair, no infinite number."""
    kind = type(value)
    if kind is str and value.isascii() and "\x00" not in value:
        return value  # as nearly everything is
    if value is None or kind is int or kind is bool:
        return value
    if kind is dict:
        return {storable(str(name)): storable(item) for name, item in value.items()}
    match value:
        case str():
            return value.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
        case float():
            return value if math.isfinite(value) else None
        case int():
            return value
        case list() | tuple() | set() | frozenset():
            return [storable(item) for item in value]
        case datetime():
            return value.isoformat()
        case Mapping():
            return storable(dict(value))
        case _:
            return storable(str(value))


def embedding_text(memory: Memory) -> str:
    """Return the text that is embedded: speaker, time and words."""
    day = f"[{in_utc(memory.time):%d %B %Y}]" if memory.time is not None else ""
    said = f"{memory.speaker}: {memory.text}" if memory.speaker else memory.text
    return storable(f"{day} {said}".strip())  # type: ignore[no-any-return]


def digest(text: str) -> str:
    """Return the digest by which an embedded text is recognized."""
    return sha256(text.encode()).hexdigest()


def as_key(name: str | None) -> str | None:
    """Return a user's or session's name as it is indexed: a long one is shortened to a beginning and a digest.

    Of one that is too long, or that PostgreSQL cannot hold, it is the beginning and a digest of all of it.
    """
    if name is None or (len(name) <= KEY_CHARS and name == storable(name)):
        return name
    told_apart_by = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{storable(name[: KEY_CHARS - len(told_apart_by) - 1])} {told_apart_by}".lstrip()


def as_row(memory: Memory) -> Row:
    """Return the row of table ``context_memories``, without embedding."""
    row: Row = storable(
        {
            "id": memory.id,
            "kind": memory.kind,
            "session_id": as_key(memory.session_id),
            "user_id": as_key(memory.user_id),
            "speaker": memory.speaker,
            "said_at": memory.time and in_utc(memory.time),
            "position": memory.position,
            "tags": memory.tags,
            "metadata": memory.metadata,
            "text": memory.text,
            "language": language_of(memory.text),
        }
    )
    return row | {"digest": digest(embedding_text(memory))}


def as_condition(where: MemoryFilter) -> Row:
    """Return the filter as the SQL functions read it; empty conditions are left out."""
    restricting = {
        "session_id": as_key(where.session_id),
        "user_id": as_key(where.user_id),
        "persona_id": where.persona_id,
        "kinds": where.kinds or None,
        "tags": where.tags or None,
        "since": where.since and in_utc(where.since),
        "until": where.until and in_utc(where.until),
        "with_unowned": where.with_unowned or None,
        "speaker": where.speaker,
        "ids": where.ids or None,
        "without_sessions": tuple(map(as_key, where.without_sessions)) or None,
        "without_kinds": where.without_kinds or None,
        "sensitivities": where.sensitivities or None,
    }
    return {name: storable(value) for name, value in restricting.items() if value is not None}


def found_of(rows: Sequence[Row]) -> list[SearchResult]:
    """Return the search result in a row of ``context_memory_search``."""
    return [
        SearchResult(
            _memory(row["memory"]),
            float(row["score"]),
            tuple(row["origins"]),
            _feedback(row["memory"]),
            float(row.get("seed") or 0.0),
        )
        for row in rows
    ]


def rating_rows(ratings: Sequence[Rating]) -> list[Row]:
    """Return the rows ``context_memory_rate`` takes; of several ratings of a memory by a user the last."""
    last = {(rating.id, rating.user_id): rating for rating in ratings}
    return [
        storable({"id": one.id, "user_id": one.user_id, "score": one.score, "timestamp": in_utc(one.time)})
        for one in last.values()
    ]


def _memory(row: Row) -> Memory:
    time = datetime.fromisoformat(said_at) if (said_at := row.get("said_at")) else None
    return Memory(
        id=row["id"],
        text=row["text"],
        kind=row["kind"],
        session_id=row["session_id"],
        user_id=row.get("user_id"),
        speaker=row.get("speaker"),
        position=row["position"],
        time=time,
        tags=tuple(row.get("tags", ())),
        metadata=row["metadata"] if isinstance(row["metadata"], dict) else {},
    )


def _feedback(row: Row) -> MemoryFeedback | None:
    feedback: Any = row.get("feedback")
    try:
        return MemoryFeedback(
            float(feedback["score"]), int(feedback["count"]), datetime.fromisoformat(feedback["timestamp"])
        )
    except (KeyError, OverflowError, TypeError, ValueError):  # there is none, or somebody else wrote it
        return None
