"""WhatsApp's chats as text, from iOS (``[03.05.23, 09:00:12] Ida: …``) and Android (``5/3/23, 9:00 AM - Ida: …``).

The order of day, month and year, their separators, and how mornings are told from afternoons are the phone's. Element
writes like Android where a browser's dates are in numbers, and KakaoTalk in a form of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from context_builder.transcript.fields import is_reaction, plain
from context_builder.transcript.formats.element_text import without_quote
from context_builder.transcript.moments import of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of
from context_builder.transcript.written_dates import DATE, HALF, WrittenDate, moment_of, order_of

_MARKS: Final = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_MARK: Final = "\u200e"
"""Left-to-right mark, which iOS writes before what the program says itself."""

_DATE: Final = rf"(?P<date>{DATE})"
_TIME: Final = rf"(?:(?P<before>{HALF})\s?)?(?P<time>\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?)(?:\s?(?P<after>{HALF}))?"
_BETWEEN: Final = r",?\s+(?:(?:um|at|à|a las|às|klo|kl\.?|ore|om|в|o)\s+)?"


def _numbered(pattern: str, form: str) -> str:
    """Return a pattern whose groups are called by the form in which it stands."""
    return re.sub(r"\(\?P<(\w+)>", rf"(?P<\g<1>{form}>", pattern)


_STAMP: Final = re.compile(
    rf"(?:\[\s?{_DATE}{_BETWEEN}{_TIME}\s?\]\s?|"
    rf"\[{_numbered(_TIME, '3')},\s{_numbered(_DATE, '3')}\]\s?|"
    rf"{_numbered(_DATE, '2')}{_BETWEEN}{_numbered(_TIME, '2')}(?:\s+[-–]\s+|,\s+(?=[^:,\n]{{1,60}}\s:\s))|"
    rf"{_numbered(_DATE, '4')},\s+{_numbered(_TIME, '4')}:\s|"
    rf"{_numbered('(?P<date>' + DATE + ')', '6')}\s{_numbered(_TIME, '6')}:\s(?=[^:\n]{{1,100}}님[이을] )|"
    rf"(?P<date5>[A-Z][a-z]{{2,8}} \d{{1,2}}, \d{{4}})(?: at)? {_numbered(_TIME, '5')},\s+(?=[^:,\n]{{1,60}}\s:\s))",
    re.IGNORECASE,
)
_FORMS: Final = ("", "2", "3", "4", "5", "6")
"""In brackets, without, the time first, as copied of WhatsApp's page, with a colon, as iOS wrote it until 2016,
with the name of the month, as KakaoTalk writes it in English, and what KakaoTalk tells of who joined or left."""

_PLAIN: Final = {
    **{ord(blank): " " for blank in "\u00a0\u202f\u2009"},
    ord("\u060c"): ",",
    **{zero + digit: str(digit) for zero in (0x660, 0x6F0) for digit in range(10)},
}
"""Blanks, Arabic's comma, and the digits of Arabic and Persian."""

_SENDER: Final = re.compile(r"(?P<name>[^:\n]{1,120}?):(?:\s(?P<text>.*)|$)", re.DOTALL)
_FILE: Final = re.compile(
    r"<[^<>\n]{2,60}>|\S[^\n]{0,120}\.\w{2,5} \([^()\n]{4,40}\)|"
    r"<?(?:attached|Anhang|pièce jointe|adjunto|anexado|bijgevoegd):? [^\n]{1,200}>?",
    re.IGNORECASE,
)
_OMITTED: Final = re.compile(
    r"(?:image|video|audio|GIF|sticker|document|contact card|photo|media|Bild|Sprachnachricht|Foto|Dokument|imagen|"
    r"imagem|vidéo|vídeo|immagine|afbeelding)\b[^\n]{0,80}"
    r"\b(?:omitted|weggelassen|ausgeschlossen|omitid[oa]|omis[e]?|ocult[oa]|omess[oa]|weggelaten)",
    re.IGNORECASE,
)
_EDITED: Final = re.compile(
    r"\s*<[^<>\n]*(?:edited|bearbeitet|editó|editad[oa]|modifi|modificat|bewerkt|отредактировано)[^<>\n]*>\s*",
    re.IGNORECASE,
)
_DAY: Final = re.compile(r"\d{4}년 \d{1,2}월 \d{1,2}일 [월화수목금토일]요일")
"""Stands above the messages of a day of KakaoTalk."""

_POLL: Final = re.compile(r"[^\W\d_]{3,12} ?:\n")
_DELETED: Final = (
    "This message was deleted", "You deleted this message", "Diese Nachricht wurde gelöscht",
    "Du hast diese Nachricht gelöscht", "Se eliminó este mensaje", "Eliminaste este mensaje",
    "Ce message a été supprimé", "Vous avez supprimé ce message", "Mensagem apagada", "Esta mensagem foi apagada",
    "Você apagou esta mensagem", "Eliminou esta mensagem", "Questo messaggio è stato eliminato",
    "Hai eliminato questo messaggio", "Dit bericht is verwijderd", "Je hebt dit bericht verwijderd",
    "U hebt dit bericht verwijderd", "Данное сообщение удалено", "Вы удалили данное сообщение", "Сообщение удалено",
    "Це повідомлення видалено", "Ви видалили це повідомлення", "Bu mesaj silindi", "Bu mesajı sildiniz",
    "Ta wiadomość została usunięta", "Usunięto tę wiadomość", "Detta meddelande raderades",
    "Det här meddelandet raderades", "Du raderade detta meddelande", "Denne besked blev slettet",
    "Du slettede denne besked", "Denne meldingen ble slettet", "Du slettet denne meldingen", "Tämä viesti poistettiin",
    "Poistit tämän viestin", "Tato zpráva byla odstraněna", "Odstranili jste tuto zprávu",
    "Ez az üzenet törölve lett", "Törölted ezt az üzenetet", "Acest mesaj a fost șters", "Ai șters acest mesaj",
    "Αυτό το μήνυμα διαγράφηκε", "Διαγράψατε αυτό το μήνυμα", "Pesan ini telah dihapus", "Pesan ini dihapus",
    "Anda menghapus pesan ini", "Anda telah menghapus pesan ini", "Tin nhắn này đã bị xóa", "Bạn đã xóa tin nhắn này",
    "このメッセージは削除されました", "このメッセージを削除しました", "メッセージが削除されました",
    "此消息已删除", "此消息已被删除",
    "您已删除此消息", "你已删除此消息", "此訊息已刪除", "您已刪除此訊息", "你已刪除此訊息",
    "이 메시지가 삭제되었습니다",
    "이 메시지를 삭제했습니다", "삭제된 메시지입니다", "تم حذف هذه الرسالة", "لقد حذفت هذه الرسالة", "حذفت هذه الرسالة",
    "הודעה זו נמחקה", "מחקת הודעה זו", "ההודעה נמחקה", "यह मैसेज मिटा दिया गया", "आपने यह मैसेज मिटाया",
)  # fmt: skip
"""As phones tell it in the languages of the program."""

_UNSAID: Final = re.compile(
    rf"(?:(?i:Esta mensagem apagada|{'|'.join(map(re.escape, _DELETED))})|"
    r"Missed (?:voice|video|group)[^\n]{0,30}call|null|Waiting for this message[^\n]*|"
    r"(?:Voice|Video) call, [^\n]{1,40})[.。]?"
)
_SYSTEM: Final = re.compile(r"end-to-end|Ende-zu-Ende|de extremo a extremo|de bout en bout|de ponta a ponta")


def is_whatsapp(text: str) -> bool:
    """Return whether a text is a chat of WhatsApp, by its first lines."""
    lines = [_MARKS.sub("", line) for line in text[:8000].split("\n") if line.strip()]
    stamps = [(line, _STAMP.match(_spaced(line))) for line in lines]
    if not any(
        found and _SENDER.match(line[found.end() :]) for line, found in stamps
    ):  # what the program says itself may come first
        return False
    return any(found and (not found["date4"] or _SENDER.match(line[found.end() :])) for line, found in stamps[:5])


def read_whatsapp(source: Source) -> Transcript:
    """Return what was said in a chat; what the program says itself, and files, are left out."""
    return of_chat(_said(source))


def _begins(line: str) -> tuple[WrittenDate, str] | None:
    """Return when a message was written that begins in a line, and the rest of the line."""
    line = line.lstrip("\u200e\u200f\ufeff")
    stamp = _STAMP.match(_spaced(line))
    if stamp is None:
        return None

    def told(*names: str) -> str:
        return next((one for one in stamp.group(*(f"{name}{form}" for name in names for form in _FORMS)) if one), "")

    date, time, half = told("date"), told("time"), told("before", "after")
    at = WrittenDate(f"{date} {time} {half}".rstrip() if stamp["date5"] else date, time, half)
    return at, line[stamp.end() :]


def _spaced(line: str) -> str:
    """Return a line with plain blanks and commas and 0 to 9, as many as it has of other kinds and of other writings."""
    return line.translate(_PLAIN)


def _without_heading(source: Source) -> None:
    """Take out of a text the lines above the first message that an empty line parts from it, as KakaoTalk has them."""
    lines = source.text.split("\n")
    first = next((place for place, line in enumerate(lines) if _begins(line) is not None), 0)
    above = ["" if _DAY.fullmatch(line.strip()) else line for line in lines[:first]]
    if any(line.strip() for line in above) and not above[-1].strip():
        source.left_out(sum(bool(line.strip()) for line in above), "line", "above the first message")
        above = [""] * first
    source.text = "\n".join([*above, *lines[first:]])


def _said(source: Source) -> Iterator[tuple[float, Utterance]]:
    _without_heading(source)
    messages = source.entries(_begins, "text without a time above it")
    order = order_of([at for _, at, _ in messages])
    for number, at, lines in messages:
        found = _SENDER.match("\n".join(lines))
        if found is None or found["name"].count('"') == 1:  # the program's own: somebody joined, or named a group
            continue
        text = _text(found["text"] or "")
        if not text:
            continue
        with source.one_entry(number):
            who = name_of(_MARKS.sub("", found["name"]).lstrip("~ "))
            yield moment_of(at, order).timestamp(), Utterance(who, text)


def _text(written: str) -> str:
    """Return what somebody wrote, without files, and nothing of what the program says."""
    edited = _EDITED.sub(" ", written)
    said, mark, told = edited.partition(_MARK)
    if (
        mark
        and not _POLL.match(told)
        and (not said.strip() or _FILE.match(told.strip()) or _OMITTED.match(told.strip()))
    ):
        edited = said + "\n" + told.partition("\n")[2]  # what somebody wrote below a file
    lines = [_MARKS.sub("", line).strip() for line in edited.split("\n")]
    lines = [
        line
        for line in lines
        if not (_DAY.fullmatch(line) or _FILE.fullmatch(line) or _OMITTED.fullmatch(line) or is_reaction(line))
    ]
    text = plain(without_quote(" ".join(lines)))
    return "" if _UNSAID.fullmatch(text) or (_SYSTEM.search(text) and mark) else text
