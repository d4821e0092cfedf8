"""Discord's channels, as DiscordChatExporter writes them in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from context_builder.transcript.fields import Object, each_object, inner, optional_text, plain, some_objects
from context_builder.transcript.moments import iso, of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_SPOKEN: Final = frozenset(
    {
        "Default",
        "Reply",
        "ChatInputCommand",
        "ContextMenuCommand",
        "ThreadStarterMessage",
        "0",
        "19",
        "20",
        "21",
        "23",
        "",
    }
)
"""Kinds of messages in which somebody says something; others announce joins, pins, calls and the like."""

_REFERENCE: Final = re.compile(r"<(@!?|#|@&)(\d{1,25})>|<a?:(\w+):\d+>")


def is_discord(messages: object) -> bool:
    """Return whether a list holds messages as Discord has them."""
    return any(isinstance(one.get("author"), dict) and "content" in one for one in some_objects(messages, 50))


def read_discord(messages: object, source: Source) -> Transcript:
    """Return what was said in a channel. Raises :class:`ValueError` for no list."""
    return of_chat(_said(messages, source))


def _said(messages: object, source: Source) -> Iterator[tuple[float, Utterance]]:
    for where, one in each_object(messages, "messages", source):
        if str(one.get("type") or "") not in _SPOKEN or not (words := _text(one)):
            continue
        try:
            at = iso(optional_text(one, "timestamp")).timestamp()
        except ValueError as error:
            source.problem(f'"timestamp" of {where}: {error}')
            continue
        author = inner(one, "author")
        name = optional_text(author, "nickname", "global_name", "globalName", "name", "username", "id")
        yield at, Utterance(name_of(name or UNKNOWN_SPEAKER), words)


def _text(message: Object) -> str:
    """Return what a message says; where its content is blank, what was forwarded or a bot's embeds say."""
    names = {
        str(one.get("id")): optional_text(one, "nickname", "name") for one in some_objects(message.get("mentions"))
    }
    own = _plain(message.get("content"), names)
    forwarded = _plain(inner(message, "forwardedMessage").get("content"), names)
    if own or forwarded:
        return own or forwarded
    is_bots = inner(message, "author").get("isBot") is True or inner(message, "author").get("bot") is True
    return (
        " ".join(part for embed in some_objects(message.get("embeds")) for part in _embed(embed, names))
        if is_bots
        else ""
    )


def _embed(embed: Object, names: Mapping[str, str]) -> Iterator[str]:
    parts = [_plain(embed.get(key), names) for key in ("title", "description")]
    parts += [
        f"{_plain(one.get('name'), names)}: {_plain(one.get('value'), names)}"
        for one in some_objects(embed.get("fields"))
    ]
    yield from (part for part in parts if part.strip(": "))


def _plain(marked: Any, names: Mapping[str, str]) -> str:
    def named(found: re.Match[str]) -> str:
        kind, target, emoji = found.groups()
        return f":{emoji}:" if emoji else f"{kind[0]}{names.get(target) or target}"

    return plain(_REFERENCE.sub(named, marked)) if isinstance(marked, str) else ""
