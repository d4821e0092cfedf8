"""E-mail: a message (.eml), and several one after another (.mbox); what a reply quotes was said before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_string, policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import parseaddr, parsedate_to_datetime
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.formats.html_exports import text_of_page
from context_builder.transcript.moments import of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_FIELD: Final = re.compile(r"(?:>?From \S+ .*\n)?(?:[A-Z][A-Za-z-]{1,40}:[ \t].*\n(?:[ \t]+\S.*\n)*){2,}")
_BEGINS: Final = re.compile(r"^From \S+.*\d{4}\b.*$\n(?=[A-Z][\w-]+:)", re.MULTILINE)
_ESCAPED: Final = re.compile(r"^>(?=>*From )", re.MULTILINE)
"""Stands in a mailbox before a line that would begin a message."""

_QUOTED: Final = re.compile(r"\s*>")
_ABOVE: Final = re.compile(
    r"\s*(?:On .{6,200} wrote:|Am .{6,200} schrieb .{0,100}:|Le .{6,200} a écrit\s?:|El .{6,200} escribió:|"
    r"-{2,}\s*(?:Original Message|Ursprüngliche Nachricht|Forwarded message|Message d'origine).*)\s*",
    re.DOTALL,
)
_ABOVE_QUOTED: Final = re.compile(
    r"^(?=[^\n]{0,300}?(?:<[^<>\s]{1,80}@[^<>\s]{1,80}>|\b\d{4}\b[^\n]{0,60}?\d{1,2}:\d\d))"
    r"[^\s>][^\n]{4,300}[:\uff1a][ \t]*\n(?:[ \t]*\n)?(?=[ \t]*>)",
    re.MULTILINE,
)
"""Who wrote what is quoted below and when, in any language: an address, or a year and a time, and a colon."""

_OUTLOOK: Final = re.compile(
    r"(?:From|Von|De): .+\n(?:(?:Sent|Gesendet|Envoyé|Date|To|An|À|Cc|Subject|Betreff|Objet): .*\n?)+"
)
_UNQUOTED: Final = re.compile(r"<blockquote\b.*", re.IGNORECASE | re.DOTALL)
"""In a page, what a reply quotes."""

_LONGEST_FIELD: Final = 10_000
_MOST_PARTS: Final = 2_000
_HEADERS: Final = frozenset({"from", "date", "subject", "to", "message-id", "received"})


def is_mail(text: str) -> bool:
    """Return whether a text begins with the fields of a message."""
    found = _FIELD.match(text[:20_000])
    if found is None:
        return False
    names = {line.partition(":")[0].lower() for line in found[0].split("\n") if ":" in line}
    return "from" in names and len(names & _HEADERS) >= 3


def read_mail(source: Source) -> Transcript:
    """Return what each message says, without what it quotes, in the order of time."""
    return of_chat(_said(source))


def _said(source: Source) -> Iterator[tuple[float, Utterance]]:
    starts = [found.start() for found in _BEGINS.finditer(source.text)] or [0]
    last = 0.0
    for start, end in zip(starts, [*starts[1:], len(source.text)], strict=True):
        line = source.text.count("\n", 0, start) + 1
        written = _BEGINS.sub("", source.text[start:end], count=1)
        if len(starts) > 1:
            written = _ESCAPED.sub("", written)
        if written.count("\n--") > _MOST_PARTS:
            source.problem("a message of too many parts", line)
            continue
        message = message_from_string(written, policy=policy.default)
        if not isinstance(message, EmailMessage):
            continue
        with source.one_entry(line):
            name, address = parseaddr(_field(message, "from"))
            try:
                moment = parsedate_to_datetime(_field(message, "date"))
            except (ValueError, TypeError, IndexError):
                moment = None
            if moment is None:
                source.problem("a message has no date", line)
            last = last if moment is None else moment.timestamp()
            if text := _own(_body(message)):
                yield last, Utterance(name_of(name or address or UNKNOWN_SPEAKER), text)


def _field(message: EmailMessage, name: str) -> str:
    """Return a field as it is written, decoded, and no more of it than any has."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")[:_LONGEST_FIELD]
    try:
        return str(make_header(decode_header(raw)))
    except (ValueError, LookupError, HeaderParseError):
        return raw


def _body(message: EmailMessage) -> str:
    if any(len(str(value)) > _LONGEST_FIELD for part in message.walk() for _, value in part.raw_items()):
        return ""  # of a message that is made to take long
    try:
        part = message.get_body(preferencelist=("plain", "html"))
        if part is None:
            return ""
        content = part.get_payload()
        if isinstance(content, str) and content.isascii():  # any other text was decoded when the file was read
            content = part.get_content()
    except (LookupError, ValueError, KeyError, RecursionError) as error:
        raise ValueError(f"a message cannot be read: {type(error).__name__}") from None
    if not isinstance(content, str):
        return ""
    if part.get_content_type() != "text/html":
        return content
    lines = text_of_page(_UNQUOTED.sub("", content)).split("\n")
    return "\n".join(line for line in lines if line.startswith("-") or not _ABOVE.fullmatch(line))


def _own(body: str) -> str:
    """Return what a message says itself: above what it quotes, and between."""
    body = _ABOVE_QUOTED.sub("", body.replace("\r\n", "\n"))
    for ends in (_OUTLOOK.search(body), re.search(r"^-- $", body, re.MULTILINE)):
        if ends:
            body = body[: min(len(body), ends.start())] or body
    kept: list[str] = []
    for paragraph in re.split(r"\n\s*\n", body):
        if _ABOVE.match(paragraph):
            head = _ABOVE.match(paragraph)
            rest = paragraph[head.end() :] if head else ""
            if head and re.search(r"-{2,}", head[0]):
                break
            paragraph = rest
        kept += [line for line in paragraph.split("\n") if not _QUOTED.match(line)]
    return plain(" ".join(kept))
