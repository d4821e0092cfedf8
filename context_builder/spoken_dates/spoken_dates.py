"""Words that mean a date by when they are said are found here, in several languages, with the date beside them.

"Next Friday" is the first Friday after the day, "this Friday" may be the day itself, "last Friday" the last one before
it. A week is told by its Monday and its Sunday, and so is "in two weeks", which seldom means a day; a month and a year
are told by themselves. No date is put beside words near which one was said with its month, or right beside which the
day of the month was. ``words.json`` has the words of each language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import orjson
from dateutil.relativedelta import MO, relativedelta, weekday

_UNITS: Final = ("days", "weeks", "months", "years")
_SHOWN: Final = {"days": 10, "weeks": 10, "months": 7, "years": 4}
"""Characters of a date in ISO 8601 that words of a unit mean."""

_ROOM: Final = 4096
_LONGEST: Final = 20_000
"""Characters of a text that is looked through."""

_WORD: Final = re.compile(r"[^\W\d_]+")
_ASIAN: Final = re.compile("[昨明今前后後]")
_NEAR: Final = 20
"""Characters before words that are looked at for what makes them mean something else."""

_BESIDE: Final = 60
"""Characters on either side of words in which a date that is said with its month is theirs."""

_RIGHT_BESIDE: Final = 30
"""Characters after words in which the day of the month is looked for."""

_POSSESSIVE: Final = re.compile(r"['’]s\b")
_TOLD: Final = re.compile(r"(?<!\s)\s*\((?:\d{4}(?:-\d\d)?(?:-\d\d)?|\d{4}-\d\d-\d\d – \d{4}-\d\d-\d\d)\)")


class SpokenDate(NamedTuple):
    """Words, where they end in the text, and the date that they mean: ISO 8601, a month's shorter, two of a week."""

    words: str
    end: int
    date: str


class _Meaning(NamedTuple):
    """What words mean: so many of a unit away, or a day of the week in a direction."""

    unit: str
    times: int
    on: int | None = None


class _Language(NamedTuple):
    pattern: re.Pattern[str]
    meanings: Mapping[str, _Meaning]
    numbers: Sequence[re.Pattern[str]]
    needs: Sequence[tuple[str, re.Pattern[str]]]


def dated(text: str, day: date | None) -> str:
    """Return the text with the date beside each of the words that mean one, said on ``day``."""
    return text if day is None else _dated(text, day)


@lru_cache(_ROOM)
def _dated(text: str, day: date) -> str:
    return with_dates(text, spoken_dates(text, day))


def with_dates(text: str, found: Iterable[SpokenDate]) -> str:
    """Return the text with dates beside the words that mean them."""
    parts, begin = [], 0
    for one in found:
        parts += [text[begin : one.end], f" ({one.date})"]
        begin = one.end
    return "".join([*parts, text[begin:]])


def undated(text: str) -> str:
    """Return a text without dates such as are put beside words."""
    return _TOLD.sub("", text)


def spoken_dates(text: str, day: date) -> list[SpokenDate]:
    """Return the words of a text that mean a date by the day on which they are said, in their order.

    Those that have a date beside them already, in figures or in words, are left out.
    """
    if len(text) > _LONGEST:
        return []
    said = set(_WORD.findall(text.casefold()))
    found: list[tuple[int, SpokenDate]] = []
    for name, triggers in _triggers().items():
        if not triggers.isdisjoint(said) or (not _table()[name]["units"] and _ASIAN.search(text)):
            found += _of_language(_language(name), text, day)
    kept: list[SpokenDate] = []
    for begin, one in sorted(found, key=lambda each: (each[0], -each[1].end)):
        if not kept or begin >= kept[-1].end:
            kept.append(one)
    return kept


def _of_language(language: _Language, text: str, day: date) -> Iterator[tuple[int, SpokenDate]]:
    for found in language.pattern.finditer(text):
        name = found.lastgroup or ""
        words = found[name]
        possessive = _POSSESSIVE.match(text, found.end())
        end = possessive.end() if possessive else found.end()
        if (
            _TOLD.match(text, end)
            or _has_month_beside(text, found.start(), end)
            or not _is_meant(language, name, text, found)
        ):
            continue
        meaning = language.meanings[name]
        if name.startswith("n"):
            count = _number(found[f"c{name}"], language.numbers)
            meaning = meaning._replace(times=meaning.times * count)
        try:
            meant = _date(meaning, day)
        except (ValueError, OverflowError):  # beyond the calendar
            continue
        if not _has_its_day_beside(text, end, meant):
            yield found.start(), SpokenDate(words, end, meant)


def _is_meant(language: _Language, name: str, text: str, found: re.Match[str]) -> bool:
    """Return whether words mean a date where they stand: "guten Morgen" is none, nor is "hier" in German."""
    words = found[name]
    unless = _unless_before().get(words.casefold())
    if unless is not None and unless.search(text, max(0, found.start() - _NEAR), found.start()):
        return False
    for word, needed in language.needs:
        if words.casefold() == word:
            return len(needed.findall(text)) > 1
    return True


def _has_month_beside(text: str, begin: int, end: int) -> bool:
    """Return whether a month is named near words, in their sentence and brackets: "tomorrow, the fifth of April"."""
    before = re.split(r"[.;!?](?=\s)|[()]", text[max(0, begin - _BESIDE) : begin])[-1]
    after = re.split(r"(?<!\d)[.;!?](?=\s|$)|[()]", text[end : end + _BESIDE])[0]
    return _months().search(before) is not None or _months().search(after) is not None


def _has_its_day_beside(text: str, end: int, meant: str) -> bool:
    """Return whether the day of the month that words mean stands right after them: "today, Tuesday the fourteenth"."""
    if len(meant) != _SHOWN["days"]:
        return False
    return _day_beside(int(meant[-2:])).match(text, end, end + _RIGHT_BESIDE) is not None


@cache
def _day_beside(day: int) -> re.Pattern[str]:
    """Return how a day of the month is told: by an ordinal after an article, or after the day of the week."""
    names = "|".join(name for language in _table().values() for name in language["weekdays"])
    spelled = "|".join(language["ordinals"][day - 1] for language in _table().values() if "ordinals" in language)
    articles = "the|der|dem|den|le|el|il|o|de"
    told = rf"(?:{spelled}|0?{day}(?:st|nd|rd|th|\.|:a)?)(?![\w:-]|[.,]\d)"
    return re.compile(rf",?\s+(?:(?:{names}),?\s+(?:(?:{articles})\s+)?|(?:{articles})\s+){told}", re.IGNORECASE)


def _number(word: str, numbers: Sequence[re.Pattern[str]]) -> int:
    if word.isdecimal():
        return int(word)
    return next(count for count, one in enumerate(numbers, start=1) if one.fullmatch(word))


def _date(meaning: _Meaning, day: date) -> str:
    unit, count = meaning.unit, meaning.times
    if meaning.on is not None and count < 0:
        return _iso(day, days=-1, weekday=weekday(meaning.on)(-1))
    if meaning.on is not None:
        return _iso(day, days=count, weekday=weekday(meaning.on)(1))
    if unit == "week":
        monday = day + relativedelta(weeks=count, weekday=MO(-1))
        return f"{monday.isoformat()} – {_iso(monday, days=6)}"
    return _iso(day, **{unit: count})[: _SHOWN[unit]]


def _iso(day: date, **away: Any) -> str:
    there: date = day + relativedelta(**away)
    return there.isoformat()


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = orjson.loads(files(__package__).joinpath("words.json").read_bytes())
    return table


@cache
def _triggers() -> dict[str, frozenset[str]]:
    """Return words by language, of which a text that means a date in it has at least one."""
    return {name: frozenset(_trigger_words(table)) for name, table in _table().items()}


def _trigger_words(table: Mapping[str, Any]) -> Iterator[str]:
    written = [max(_WORD.findall(words), key=len) for words in table["days"]]
    written += [*table["weekdays"], *table["units"], *(one for more in table["units"].values() for one in more)]
    for one in written:
        yield from _WORD.findall(one.replace("(?:-feira)?", "").casefold())


@cache
def _unless_before() -> dict[str, re.Pattern[str]]:
    """Return what is not before words that mean a date, in any language: they mean a time of day there."""
    found: dict[str, list[str]] = {}
    for language in _table().values():
        for word, before in language.get("unless_before", {}).items():
            found.setdefault(word, []).extend(before)
    return {word: re.compile(rf"(?<!\w)(?:{'|'.join(before)})\s+\Z", re.IGNORECASE) for word, before in found.items()}


@cache
def _months() -> re.Pattern[str]:
    """Return the names of months in any language, as they stand in dates."""
    names = "|".join(name for language in _table().values() for name in language["months"])
    return re.compile(rf"(?<![^\W\d_])(?:{names})(?![^\W\d_])", re.IGNORECASE)


@cache
def _language(name: str) -> _Language:
    table = _table()[name]
    meanings: dict[str, _Meaning] = {}
    parts: list[str] = []

    def add(kind: str, phrase: str, meaning: _Meaning) -> None:
        name = f"{kind}{len(meanings)}"
        meanings[name] = meaning
        parts.append(f"(?P<{name}>{phrase.replace('{name}', name)})")

    for words, count in sorted(table["days"].items(), key=lambda one: -len(one[0])):
        add("d", words, _Meaning("days", count))
    nouns = [*table["units"]]
    number = "|".join(["[1-9][0-9]?", *table["numbers"]])
    for which, count in (("next", 1), ("last", -1), ("this", 0)):
        wanted = f"(?:{'|'.join(table[which])})"
        for order in table["order"] if table[which] else ():
            for on, noun in enumerate(table["weekdays"]):
                phrase = order.format(which=wanted, noun=f"(?:{noun})")
                add("w", phrase, _Meaning("", count, on))
            for unit, noun in list(zip(_UNITS, nouns, strict=True))[1:] if nouns else ():
                phrase = order.format(which=wanted, noun=f"(?:{noun})")
                add("u", phrase, _Meaning("week" if unit == "weeks" else unit, count))
    other_days = "|".join(table.get("unless_after", ["(?!)"]))  # working days: nobody knows here which are none
    for key, sign in (("ago", -1), ("ahead", 1)):
        for template in table[key]:
            for unit, (noun, plurals) in zip(_UNITS, table["units"].items(), strict=True):
                phrase = template.format(n=f"(?P<c{{name}}>{number})", unit=f"(?:{'|'.join([noun, *plurals])})")
                add("n", rf"{phrase}(?!\s+(?:{other_days})\b)", _Meaning("week" if unit == "weeks" else unit, sign))
    is_spaced = bool(table["units"])
    joined = "|".join(parts)
    return _Language(
        re.compile(rf"(?<![\w-])(?:{joined})(?![\w-])" if is_spaced else joined, re.IGNORECASE),
        meanings,
        [re.compile(one, re.IGNORECASE) for one in table["numbers"]],
        [
            (word, re.compile(rf"(?<!\w)(?:{needed})(?!\w)", re.IGNORECASE))
            for word, needed in table.get("needs", {}).items()
        ],
    )
