"""Messages as further chat programs export them in JSON: what each calls who wrote, what, and when, is in a table.

Telegram's desktop program, Rocket.Chat, Zulip, Mattermost's bulk export and interface, Facebook's and Instagram's
messenger, Google Chat, Skype, Teams by Microsoft's Graph, signal-cli and signal-export, text messages as Android has
them, ChatGPT, and Claude.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from context_builder.transcript.fields import Object, each_object, inner, optional_text, plain, some_objects
from context_builder.transcript.moments import epoch_seconds, iso, of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of
from context_builder.transcript.written_dates import WrittenDate, moment_of

Names = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """What a message says: ``at`` is a moment as the program writes it, ``edits`` that of the message it edits."""

    who: object
    text: object
    at: object
    edits: object = None


@dataclass(frozen=True, slots=True)
class Messenger:
    """A chat program: ``fields`` are in its messages alone, ``said`` yields what one says; joins say nothing."""

    name: str
    fields: tuple[str, ...]
    said: Callable[[Object], Iterator[Said]]

    def matches(self, message: Object) -> bool:
        return all(field in message for field in self.fields)


def _telegram(one: Object) -> Iterator[Said]:
    if one.get("type") == "message":
        parts = one["text"] if isinstance(one.get("text"), list) else [one.get("text")]
        text = "".join(str(part.get("text") or "") if isinstance(part, dict) else str(part or "") for part in parts)
        yield Said(one.get("from") or one.get("from_id"), text, one.get("date_unixtime") or one.get("date"))


def _rocket_chat(one: Object) -> Iterator[Said]:
    if not one.get("t"):  # of a system's message: what it tells
        user = inner(one, "u")
        yield Said(optional_text(user, "name", "username"), one.get("msg"), one.get("ts"))


def _zulip(one: Object) -> Iterator[Said]:
    is_marked = one.get("content_type") == "text/html"
    text = one.get("content")
    yield Said(one.get("sender_full_name"), unmarked(text) if is_marked else text, one.get("timestamp"))


def _zulip_export(one: Object) -> Iterator[Said]:
    yield Said(one.get("sender"), one.get("content"), one.get("date_sent"))


def _facebook(one: Object) -> Iterator[Said]:
    if one.get("is_unsent") is not True:
        yield Said(_mended(one.get("sender_name")), _mended(one.get("content")), one.get("timestamp_ms"))


def _google_chat(one: Object) -> Iterator[Said]:
    yield Said(optional_text(inner(one, "creator"), "name", "email"), one.get("text"), one.get("created_date"))


def _hangouts(one: Object) -> Iterator[Said]:
    content = inner(one, "chat_message", "message_content").get("segment")
    parts = [_part(part) for part in content] if isinstance(content, list) else []
    yield Said(inner(one, "sender_id").get("gaia_id"), "".join(parts), one.get("timestamp"))


def _skype(one: Object) -> Iterator[Said]:
    if str(one.get("messagetype")).startswith(("RichText", "Text")) and "_" not in str(one.get("messagetype")):
        who = (
            one.get("displayName")
            or one.get("imdisplayname")
            or re.sub(r"^\d+:(?:live:)?", "", str(one.get("from") or ""))
        )
        yield Said(who, unmarked(one.get("content")), one.get("originalarrivaltime"))


def _teams(one: Object) -> Iterator[Said]:
    if one.get("messageType") == "message" and not one.get("deletedDateTime"):
        sender = inner(one, "from")
        who = next((name for kind in sender if (name := optional_text(inner(sender, kind), "displayName"))), "")
        body = inner(one, "body")
        text = body.get("content")
        yield Said(who, unmarked(text) if body.get("contentType") == "html" else text, one.get("createdDateTime"))


def _teams_export(one: Object) -> Iterator[Said]:
    """Yield what a message says in an export of Teams' data, whose fields are those of Graph with capitals."""
    yield from _teams(_uncapitalized(one))


def _uncapitalized(value: Object) -> Object:
    return {
        f"{key[:1].lower()}{key[1:]}": _uncapitalized(inside) if isinstance(inside, dict) else inside
        for key, inside in value.items()
    }


def _signal_cli(one: Object) -> Iterator[Said]:
    envelope = inner(one, "envelope") or inner(one, "params", "envelope")
    message = inner(envelope, "dataMessage") or inner(envelope, "syncMessage", "sentMessage")
    edit = inner(envelope, "editMessage") or inner(message, "editMessage")
    message = inner(edit, "dataMessage") or message
    who = optional_text(envelope, "sourceName", "sourceNumber", "source")
    at = message.get("timestamp") or envelope.get("timestamp")
    yield Said(who, message.get("message"), at, edit.get("targetSentTimestamp"))


def signal_message(one: Object) -> Said | None:
    """Return what a message of signal-cli says; None for a message of another program."""
    messenger = messenger_of(one)
    return next(messenger.said(one)) if messenger and messenger.said is _signal_cli else None


def _signal_export(one: Object) -> Iterator[Said]:
    yield Said(one.get("sender"), one.get("body"), one.get("date"))


def _sms(one: Object) -> Iterator[Said]:
    """Yield a text message by Android's fields: its type is 1 if it was received, else the phone's owner wrote it."""
    yield Said(one.get("address") if one.get("type") in (1, "1") else "Me", one.get("body"), one.get("date"))


def _signal_desktop(one: Object) -> Iterator[Said]:
    who = "Me" if one.get("type") == "outgoing" else one.get("source") or one.get("sourceServiceId")
    yield Said(who, one.get("body"), one.get("sent_at"))


def _signal_backup(one: Object) -> Iterator[Said]:
    """Yield what a frame of Signal's export in plain text says; people are in frames of their own."""
    item = inner(one, "chatItem")
    text = inner(item, "standardMessage", "text").get("body")
    yield Said(item.get("authorId"), text, item.get("dateSent"))


def _whatsapp_exporter(one: Object) -> Iterator[Said]:
    """Yield what a message says of those that WhatsApp-Chat-Exporter keeps; of a file, its caption."""
    if not one.get("meta"):
        who = "Me" if one.get("from_me") else optional_text(one, "sender", "chat")
        text = one.get("caption") if one.get("media") or one.get("sticker") else one.get("data")
        yield Said(who, unmarked(text), one.get("timestamp"))


def _live_chat(one: Object) -> Iterator[Said]:
    """Yield what is written beside a live video of YouTube, as yt-dlp keeps it."""
    for action in some_objects(inner(one, "replayChatItemAction").get("actions")):
        item = inner(action, "addChatItemAction", "item")
        message = inner(item, "liveChatTextMessageRenderer") or inner(item, "liveChatPaidMessageRenderer")
        parts = inner(message, "message").get("runs")
        text = "".join(map(_part, parts)) if isinstance(parts, list) else ""
        yield Said(inner(message, "authorName").get("simpleText"), text, message.get("timestampUsec"))


def _mattermost(one: Object) -> Iterator[Said]:
    post = inner(one, str(one.get("type"))) or one
    if not str(post.get("type") or "").startswith("system_") and not post.get("delete_at"):
        for each in (post, *some_objects(post.get("replies"))):
            yield Said(each.get("user") or each.get("user_id"), each.get("message"), each.get("create_at"))


def _chat_gpt(conversation: Object) -> Iterator[Said]:
    """Yield what is said on the way to the node that is shown; answers that were made anew are left out."""
    nodes = inner(conversation, "mapping")
    name: Any = str(conversation.get("current_node"))
    way: list[Object] = []
    if name not in nodes:
        name = next(reversed([*nodes]), None)
    while isinstance(name, str) and isinstance(node := nodes.get(name), dict) and len(way) <= len(nodes):
        way.append(inner(node, "message"))
        name = node.get("parent")
    for message in reversed(way):
        parts = inner(message, "content").get("parts")
        role = inner(message, "author").get("role")
        if isinstance(parts, list) and role in ("user", "assistant"):
            yield Said(role, " ".join(map(_part, parts)), message.get("create_time"))


def _part(part: object) -> str:
    """Return a part of a message: a text, or what was spoken."""
    found = part.get("text") if isinstance(part, dict) else part
    return found if isinstance(found, str) else ""


def _claude(conversation: Object) -> Iterator[Said]:
    for one in some_objects(conversation.get("chat_messages")):
        parts = one["content"] if isinstance(one.get("content"), list) else []
        text = optional_text(one, "text") or " ".join(map(_part, parts))
        yield Said(one.get("sender"), text, one.get("created_at"))


def _gemini(one: Object) -> Iterator[Said]:
    """Yield what was asked and answered: the answer is told with the question, at one moment."""
    named = {str(part.get("name")): optional_text(part, "value") for part in some_objects(one.get("details"))}
    told = {name: named[name] for name in ("Request", "Response") if named.get(name)}
    if told:
        yield Said("user", told.get("Request"), one.get("time"))
        yield Said("Gemini", told.get("Response"), one.get("time"))
        return
    asked = optional_text(one, "title")
    yield Said("user", re.sub(r"^(?:Prompted|Asked|Said) ", "", asked), one.get("time"))
    for answer in some_objects(one.get("safeHtmlItem")):
        yield Said("Gemini", unmarked(answer.get("html")), one.get("time"))


def _copilot(one: Object) -> Iterator[Said]:
    """Yield what was asked and answered; of an answer, what is text, not what tools did."""
    yield Said("user", inner(one, "message").get("text"), one.get("timestamp"))
    said = "".join(map(_copilots_part, some_objects(one.get("response"))))
    yield Said("GitHub Copilot", said, one.get("timestamp"))


def _copilots_part(part: Object) -> str:
    """Return a part of an answer: a text, or the name of what it refers to."""
    match part.get("kind") or "":
        case "":
            found = part.get("value")
        case "markdownContent":
            found = inner(part, "content").get("value")
        case "inlineReference":
            path = inner(part, "inlineReference").get("path")
            found = part.get("name") or str(path or "").rpartition("/")[2]
        case _:
            return ""
    return found if isinstance(found, str) else ""


MESSENGERS: Final = (
    Messenger("Telegram", ("date", "id", "type", "text"), _telegram),
    Messenger("Rocket.Chat", ("u", "msg", "ts"), _rocket_chat),
    Messenger("Zulip", ("sender_full_name", "content", "timestamp"), _zulip),
    Messenger("Zulip", ("sender", "content", "date_sent"), _zulip_export),
    Messenger("Messenger", ("sender_name", "timestamp_ms"), _facebook),
    Messenger("Google Chat", ("creator", "created_date"), _google_chat),
    Messenger("Hangouts", ("sender_id", "timestamp", "chat_message"), _hangouts),
    Messenger("Skype", ("originalarrivaltime", "messagetype"), _skype),
    Messenger("Teams", ("messageType", "createdDateTime", "body"), _teams),
    Messenger("Teams", ("MessageType", "CreatedDateTime", "Body"), _teams_export),
    Messenger("signal-cli", ("envelope",), _signal_cli),
    Messenger("signal-cli", ("jsonrpc", "params"), _signal_cli),
    Messenger("signal-export", ("sender", "body", "date"), _signal_export),
    Messenger("SMS", ("address", "body", "date", "type"), _sms),
    Messenger("Signal", ("conversationId", "body", "sent_at"), _signal_desktop),
    Messenger("Signal", ("chatItem",), _signal_backup),
    Messenger("WhatsApp-Chat-Exporter", ("from_me", "timestamp", "data", "key_id"), _whatsapp_exporter),
    Messenger("YouTube", ("replayChatItemAction",), _live_chat),
    Messenger("Mattermost", ("type", "post"), _mattermost),
    Messenger("Mattermost", ("type", "direct_post"), _mattermost),
    Messenger("Mattermost", ("create_at", "message", "user_id"), _mattermost),
    Messenger("ChatGPT", ("mapping",), _chat_gpt),
    Messenger("Gemini", ("header", "title", "time", "products"), _gemini),
    Messenger("Copilot", ("requestId", "message", "response"), _copilot),
    Messenger("Claude", ("chat_messages",), _claude),
)
"""A message of one has all of these fields."""

_OTHER_LINES: Final = ("version", "team", "channel", "user", "emoji", "direct_channel", "scheme", "role", "bot")
"""What a bulk export of Mattermost has besides posts, by type."""


_OTHER_FRAMES: Final = frozenset({"account", "recipient", "chat", "stickerPack", "adHocCall", "chatFolder"})
"""What Signal's export has besides items of chats."""


def messenger_of(message: Object) -> Messenger | None:
    return next((one for one in MESSENGERS if one.matches(message)), None)


def is_about(message: Object) -> bool:
    """Return whether an object tells of an export of Mattermost or Signal, not of a message."""
    if len(message) == 1 and message.keys() <= _OTHER_FRAMES:
        return True
    kind = message.get("type")
    return kind in _OTHER_LINES and kind in message


def is_messages(messages: object) -> bool:
    """Return whether a list holds messages of one of these."""
    return any(messenger_of(one) is not None for one in some_objects(messages, 200))


def read_messages(messages: object, source: Source) -> Transcript:
    """Return what was said in the order of time. Raises :class:`ValueError` for no list."""
    return of_chat(_said(messages, source))


def _said(messages: object, source: Source) -> Iterable[tuple[float, Utterance]]:
    listed = [*each_object(messages, "messages", source)]
    names = {**dict(_people(one for _, one in listed)), **source.names}
    said: list[tuple[float, Utterance]] = []
    places: dict[tuple[str, object], int] = {}  # of messages and their edits, by who wrote them and when
    for where, message in listed:
        messenger = messenger_of(message)
        for one in messenger.said(message) if messenger else ():
            if isinstance(one.text, str) and (text := plain(one.text)):
                with source.one_entry():
                    who = names.get(str(one.who)) or name_of(one.who or UNKNOWN_SPEAKER)
                    at = _moment(one.at, where)
                    place = len(said) if one.edits is None else places.get((who, str(one.edits)), len(said))
                    places[who, str(one.at)] = place
                    said[place : place + 1] = [(said[place][0] if place < len(said) else at, Utterance(who, text))]
    return said


def _people(messages: Iterator[Object]) -> Iterator[tuple[str, str]]:
    """Yield what the people of a bulk export are called, by users' names (Mattermost) or numbers (Signal)."""
    me = "Me"
    for one in messages:
        if account := inner(one, "account"):
            me = " ".join(part for key in ("givenName", "familyName") if (part := optional_text(account, key))) or me
        if recipient := inner(one, "recipient"):
            contact = inner(recipient, "contact")
            parts = [optional_text(contact, f"profile{key}", f"system{key}") for key in ("GivenName", "FamilyName")]
            name = " ".join(part for part in parts if part) or (me if "self" in recipient else "")
            if name or contact.get("e164"):
                yield str(recipient.get("id")), name_of(name or contact["e164"])
        if one.get("type") == "user":
            user = inner(one, "user")
            name = " ".join(part for key in ("first_name", "last_name") if (part := optional_text(user, key)))
            if name:
                yield str(user.get("username")), name_of(name)


def _moment(value: Any, where: str) -> float:
    """Return the epoch seconds of a moment. Raises :class:`ValueError` for any other value."""
    if isinstance(value, dict):  # MongoDB's
        value = value.get("$date")
        value = value.get("$numberLong") if isinstance(value, dict) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return epoch_seconds(value, f"the moment of {where}")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where} has no moment")
    if re.fullmatch(r"\d{1,20}(?:\.\d{1,9})?", value):
        return epoch_seconds(float(value), f"the moment of {where}")
    if re.match(r"\d{4}-", value):
        return iso(value).timestamp()
    return moment_of(WrittenDate(value), "ymd").timestamp()


def _mended(value: object) -> object:
    """Return a text that was written as if each byte of its UTF-8 were a letter, as Facebook's export does."""
    try:
        return value.encode("latin-1").decode("utf-8") if isinstance(value, str) else value
    except (UnicodeDecodeError, UnicodeEncodeError):
        return value


def unmarked(value: object) -> str:
    """Return the text of HTML that a chat program writes."""
    if not isinstance(value, str):
        return ""
    blocks = re.sub(r"</?(?:p|div|br|li|ul|ol|blockquote|pre|tr|td|h\d)\b[^<>]*>", " ", value, flags=re.IGNORECASE)
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", "", blocks)).split())
