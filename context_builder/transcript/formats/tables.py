"""Tables of what was said: Whisper's ``.tsv``, whisper.cpp's ``.csv``, Audacity's labels, and meeting tools' own."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Final

from context_builder.clock import moment
from context_builder.transcript.fields import plain
from context_builder.transcript.labels import is_written_as_name, labelled
from context_builder.transcript.moments import epoch_seconds, iso
from context_builder.transcript.offsets import offset
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of, speaker_name
from context_builder.transcript.written_dates import WrittenDate, moment_of, order_of, written

_ISO: Final = re.compile(r"\s*\d{4}-\d\d-\d\d[T ]\d")
_EPOCH: Final = 10**9
_EPOCHAL: Final = re.compile(r"\s*\d{1,20}(?:\.\d{1,9})?\s*")
_LONGEST_FIELD: Final = 2**24
_COLUMNS: Final = {
    "start": (
        "start", "starttime", "starttimestamp", "startseconds", "startms", "begin", "from", "time", "timestamp",
        "timecode", "timespan", "timerange", "offset", "in", "tc", "beginn", "anfang", "startzeit", "zeit", "début",
        "debut", "heure", "temps", "inicio", "hora", "tiempo", "tempo", "inizio", "ora", "tijd", "starttijd", "tid",
        "starttid", "czas", "čas", "idő", "aika", "zaman", "время", "начало", "час", "時間", "时间", "開始", "开始时间",
        "시간", "시작",
    ),
    "date": (
        "date", "datetime", "createdat", "postcreationtime", "messagedate", "createtime", "sentat", "senttime", "day",
        "strtime",
        "datum", "fecha", "data", "dato", "дата", "日付", "日期", "날짜",
    ),
    "end": ("end", "endtime", "endtimestamp", "endseconds", "endms", "to", "stop", "out", "ende", "fin", "fim", "fine"),
    "speaker": (
        "speaker", "speakername", "name", "who", "author", "username", "sender", "sendername", "fromname", "user",
        "participant", "participantname", "talker", "nickname", "displayname", "role", "speakerlabel", "from",
        "realname", "speakerid", "sprecher", "sprecherin", "person", "absender", "teilnehmer", "locuteur",
        "intervenant", "orateur", "auteur", "nom", "hablante", "orador", "participante",
        "interlocutor", "nombre", "falante", "autor",
        "relatore", "parlante", "oratore", "spreker", "naam", "talare",
        "taler", "namn", "navn", "puhuja", "mówca", "rozmówca",
        "mluvčí", "beszélő", "konuşmacı", "спикер", "говорящий", "участник", "автор", "имя", "話者", "発言者", "发言人",
        "说话人", "發言人", "講者", "화자", "발화자", "이름",
    ),
    "text": (
        "text", "sentence", "transcript", "transcription", "content", "contents", "postmessage", "message",
        "messagetext", "body", "utterance", "words", "caption", "dialogue", "msg", "strcontent", "nachricht",
        "äußerung", "beitrag", "texte", "propos", "texto", "mensaje", "mensagem", "contenido", "conteúdo", "fala",
        "testo",
        "messaggio", "tekst", "bericht", "teksti", "repla", "wypowiedź", "szöveg", "metin", "текст", "сообщение",
        "реплика",
        "発言", "発言内容", "内容", "テキスト", "文本", "內容", "文字", "내용", "발화", "텍스트",
    ),
    "direction": ("direction", "type", "issender", "isfromme", "messagetype"),
}  # fmt: skip
"""How the columns are called, without capitals and blanks."""

_SENT: Final = ("outgoing", "sent", "from me")
"""Directions of what whoever exports messages wrote, where no name stands beside."""

_IS_ESCAPED: Final = re.compile(r'^(?:[^"\n]{0,4000}[,;\t|])?"[^"\\\n]{0,4000}\\"(?! *(?:[,;\t|\n]|\Z))', re.MULTILINE)
_ESCAPED: Final = re.compile(r'\\"(?! *(?:[,;\t|] *"|\n|\Z))')
"""A quotation mark as databases and some programs write it within a cell."""

_UNIT: Final = re.compile(r"\s*[\[(](?:m?s|(?:milli)?sec(?:ond)?s?|hh.*)[\])]\s*$")
_RULE: Final = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")
_BAR: Final = re.compile(r"(?<!\\)\|")
_FIRST_ROWS: Final = 3
_SAID: Final = re.compile(r"\s{0,4}(?:\*\*)?(?P<who>[^\W\d_][^|:*\n]{0,40}):(?:\*\*)?\s")
"""How a line begins that somebody says."""
_RANGE: Final = re.compile(r"\s*[\[(]?(?P<start>[\d:.,]+)\s*(?:-+>|[-–—→])\s*(?P<end>[\d:.,]+)[\])]?\s*")
_DAY: Final = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\s*")
_CLOCK_OF_ELAN: Final = re.compile(r"\d{1,2}:\d\d:\d\d\.\d{3}")
"""In the third of nine columns: tier, participant, and begin, end and length, each as a clock and in seconds."""

_CLOCK: Final = re.compile(r"\s*\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp][Mm])?\s*")


def read_tsv(source: Source) -> Transcript:
    """Return the transcript in a table with tabs; without a heading as Audacity has labels: start, end, text."""
    return _read(source, "\t")


def is_table(text: str) -> bool:
    """Return whether a text has a table in Markdown, or is one with tabs or bars, whose heading names who and what."""
    lines = [line for line in text[:8000].split("\n") if line.strip()]
    if len(lines) < 2:
        return False
    if _heading_of_markdown(lines) is not None:
        return True
    cells = _markdown(lines[0]) if _is_barred(lines[:_FIRST_ROWS]) else lines[0].split("\t")
    return len(cells) > 1 and _names_who(cells, "\t" if "\t" in lines[0] else "|")


def read_table(source: Source) -> Transcript:
    """Return the transcript in a table within a text."""
    lines = source.text.split("\n")
    told = [line for line in lines if line.strip()]
    if (heading := _heading_of_markdown(lines)) is not None:
        rows = [*takewhile(lambda line: "|" in line, (line for line in lines[heading:] if not _RULE.fullmatch(line)))]
        source.left_out(len(told) - len(rows) - 1, "line", "around the table")
        source.text = "\n".join("\t".join(_markdown(line)) for line in rows)
    elif _is_barred(told[:_FIRST_ROWS]):
        source.text = "\n".join("\t".join(_markdown(line)) for line in told)
    return read_tsv(source)


def _heading_of_markdown(lines: Sequence[str]) -> int | None:
    """Return the place of the heading of the first table in Markdown that names who and what; None without one, and
    where somebody says something more than once above it: such a table is part of what is said.
    """
    above: set[str] = set()
    for place, (line, below) in enumerate(pairwise(lines)):
        if "|" in line and _RULE.fullmatch(below) and _names_who(_markdown(line), "|"):
            return place
        if said := _SAID.match(line):
            if said["who"] in above:
                return None
            above.add(said["who"])
    return None


def _names_who(cells: Sequence[str], between: str) -> bool:
    columns, is_heading = _columns(cells)
    return is_heading and "speaker" in columns and (between == "\t" or "text" in columns)


def _is_barred(lines: Sequence[str]) -> bool:
    """Return whether the first lines have as many bars with blanks around, and no tabs."""
    bars = {line.count(" | ") for line in lines}
    return len(lines) > 1 and len(bars) == 1 and bars != {0} and not any("\t" in line for line in lines)


def _markdown(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(line.strip().strip("|"))]


def is_labels(text: str) -> bool:
    """Return whether a text is Audacity's labels, or ELAN's table, by its first line."""
    return bool(re.match(r"\s*\d+\.\d+\t\d+\.\d+\t\S|[^\t\n]+\t[^\t\n]*\t\d\d:\d\d:\d\d\.\d{3}\t\d", text))


def read_csv(source: Source) -> Transcript:
    """Return the transcript in a table with commas, or with semicolons."""
    lines = source.text.split("\n")
    above = takewhile(lambda line: not line.strip() or line.startswith("#") or re.fullmatch("sep=.", line), lines[:-1])
    lines = lines[sum(1 for _ in above) :]  # without what programs write above the heading
    source.text = "\n".join(lines)
    return _read(source, max(",;\t|", key=lines[0].count))


def _is_quoted(text: str) -> bool:
    """Return whether a table with tabs has quotation marks around cells, as spreadsheets write them.

    Each row then has as many cells as the heading, and some cell has doubled marks, or several lines.
    """
    if '"' not in text:
        return False
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter="\t", strict=True) if any(row)]
    except csv.Error:
        return False
    cells = {cell for row in rows for cell in row}
    has_lines = any("\n" in cell for cell in cells)
    written = (cell.strip("\r") for line in text.split("\n") for cell in line.split("\t") if '""' in cell)
    is_doubled = any(cell[1:-1].replace('""', '"') in cells for cell in written if cell[0] == cell[-1] == '"')
    is_whole = len({len(row) for row in rows}) == 1 and not any("\t" in cell for cell in cells)
    return is_whole and (has_lines or is_doubled)


def _read(source: Source, delimiter: str) -> Transcript:
    csv.field_size_limit(_LONGEST_FIELD)
    is_quoted = delimiter != "\t" or _is_quoted(source.text)
    if is_quoted:
        source.text = _ESCAPED.sub('""', source.text) if _IS_ESCAPED.search(source.text) else source.text
    rows = csv.reader(
        io.StringIO(source.text),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
    )
    said: list[Utterance] = []
    dates: list[tuple[int, str]] = []
    columns: dict[str, int] | None = None
    unit, width, is_heading = 1.0, 0, False
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if columns is None:
                columns, is_heading = _columns(row)
                unit = 0.001 if is_heading and _is_milliseconds(row, source.text, delimiter) else 1.0
                width = len(row) if is_heading else columns["text"] + 1
                if is_heading:
                    continue
            if (place := columns.get("start", len(row))) < len(row) and _is_date(row[place]):
                columns["date"] = columns.pop("start")
            elif (
                "start" in columns
                and (place := columns.get("date", len(row))) < len(row)
                and _DAY.fullmatch(row[place])
            ):
                columns["clock"] = columns.pop("start")  # the time of the day that another column names
            with source.one_entry(rows.line_num):
                found = _utterance(row, columns, unit, width)
                said += found
                dates += [(rows.line_num, "" if "start" in columns else _date(row, columns)) for _ in found]
    except csv.Error as error:
        source.problem(error, rows.line_num)
    if said[1:] and not is_heading and not any(map(str.isalpha, "".join(one.text for one in said[1:]))):
        raise ValueError("a table of figures; what is said has a column such as text or message")
    moments = _moments(dates, source)
    told = [moment for moment in moments if moment is not None]
    if not told:
        return Transcript(once(labelled(said)))
    first, started = min(told), moment(min(told))
    said = [replace(one, at=None if at is None else at - first) for one, at in zip(said, moments, strict=True)]
    if len(told) == len(said):
        said.sort(key=lambda one: one.at or 0.0)
    return Transcript(said, started.astimezone() if started else None)


def _date(row: Sequence[str], columns: dict[str, int]) -> str:
    """Return the date of a chat's message as it is written, with the time of day where that has a column of its own."""
    place, clock = columns.get("date", len(row)), columns.get("clock", len(row))
    parts = [row[one].strip() for one in (place, clock) if one < len(row)]
    return " ".join(part for part in parts if part)


def _moments(dates: Sequence[tuple[int, str]], source: Source) -> list[float | None]:
    """Return the epoch seconds of the dates in lines; None where there is none that can be read, which is noted."""
    order = order_of([found for _, date in dates if not _ISO.match(date) and (found := written(date)) is not None])
    moments: list[float | None] = []
    for line, date in dates:
        at = None
        if date:
            with source.one_entry(line):
                if _EPOCHAL.fullmatch(date):
                    at = epoch_seconds(float(date), "the date")
                elif _ISO.match(date):
                    at = iso(date).timestamp()
                else:
                    at = moment_of(written(date) or WrittenDate(date), order).timestamp()
        moments.append(at)
    return moments


def _columns(row: Sequence[str]) -> tuple[dict[str, int], bool]:
    """Return where the columns are, and whether the row is their heading."""
    cells = ["".join(one for one in _UNIT.sub("", cell.lower()) if one.isalnum()) for cell in row]
    found = {kind: place for kind, names in _COLUMNS.items() for place in _places(cells, names)}
    if "text" in found:
        if found.get("start") == found.get("speaker"):  # from whom
            found.pop("start", None)
        return found, True
    if len(row) >= 4 and _DAY.fullmatch(row[0]) and _CLOCK.fullmatch(row[1]):
        return {"date": 0, "clock": 1, "speaker": 2, "text": len(row) - 1}, False
    if len(row) == 9 and _CLOCK_OF_ELAN.fullmatch(row[2]):
        return {"speaker": 0, "start": 2, "end": 4, "text": 8}, False
    if len(row) == 2 and is_written_as_name(row[0]):
        return {"speaker": 0, "text": 1}, False
    if len(row) >= 4:
        return {"start": 0, "end": 1, "speaker": 2, "text": 3}, False
    return {"start": 0, "end": 1, "text": len(row) - 1}, False


def _is_date(cell: str) -> bool:
    return (
        bool(_ISO.match(cell)) or (bool(_EPOCHAL.fullmatch(cell)) and float(cell) > _EPOCH) or written(cell) is not None
    )


def _places(cells: Sequence[str], names: Sequence[str]) -> list[int]:
    return next(([cells.index(name)] for name in names if name in cells), [])


def _is_milliseconds(heading: Sequence[str], text: str, delimiter: str) -> bool:
    """Return whether a table's times are milliseconds: by their name, or whole numbers, as Whisper writes them."""
    if any(
        re.fullmatch(r"(?:start|end)[\W_]*m(?:illi)?s(?:econds)?\W*", cell.strip(), re.IGNORECASE) for cell in heading
    ):
        return True
    line = text.partition("\n")[2].lstrip("\n").partition("\n")[0]
    return len(heading) > 1 and bool(re.match(rf'(?:\s*"?\d+"?\s*{re.escape(delimiter)}){{2}}', line))


def _utterance(row: Sequence[str], columns: dict[str, int], unit: float, width: int) -> list[Utterance]:
    cells = {kind: row[place].strip() if place < len(row) else "" for kind, place in columns.items()}
    if columns["text"] == max(columns.values()) and len(row) > width:  # commas of a text that has no quotation marks
        cells["text"] = ",".join(row[columns["text"] : columns["text"] + 1 + len(row) - width])
    text = plain(cells["text"])
    speaker = speaker_name(name_of(cells["speaker"])) if cells.get("speaker") else UNKNOWN_SPEAKER
    if speaker == UNKNOWN_SPEAKER and cells.get("direction", "").lower() in _SENT:
        speaker = "Me"
    if not text:
        return []
    if span := _RANGE.fullmatch(cells.get("start", "")):
        cells |= {"start": span["start"], "end": span["end"]}
    return [Utterance(speaker, text, _time(cells.get("start"), unit), until=_time(cells.get("end"), unit))]


def _time(cell: str | None, unit: float) -> float | None:
    if not cell:
        return None
    if ":" in cell:
        return offset(cell.strip("[]()"))
    return float(cell.replace(",", ".")) * unit if re.fullmatch(r"\d{1,12}(?:[.,]\d{1,12})?", cell) else None
