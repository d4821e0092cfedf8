"""Reads the numbers of a text, in digits or in words, and the units that they count."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

import regex

from context_builder.analysis.evidence.words import TABLES, UNSPACED, plain, words_of

ONE: Final = "1"
"""Nearly every text says it, as an article or a pronoun."""

_TOKEN: Final = regex.compile(
    rf"(?P<digits>(?<![a-z\p{{Nd}}])\p{{Nd}}+(?:[.,:']\p{{Nd}}+)*)"
    rf" | (?P<han>[〇零一二两兩三四五六七八九十百千万萬億亿]+) | (?P<word>[\p{{L}}\p{{M}}--[{UNSPACED}]]+)",
    regex.V1 | regex.VERBOSE,
)
_UNIT_AFTER: Final = regex.compile(
    rf"[\s\-]*(?:an?\s+)?(?:(?P<sign>[%€$£¥₹°])|(?P<word>[\p{{L}}\p{{M}}--[{UNSPACED}]]+)|(?P<unspaced>[{UNSPACED}]{{1,5}}))",
    regex.V1,
)
_SIGN_BEFORE: Final = regex.compile(r"[€$£¥₹]\s?\Z")
_MINUS_BEFORE: Final = regex.compile(
    r"(?:(?<![\p{L}\p{N}])[-−]|(?<!\b(?:au|du|al|lo|ao|pelo)\s)\b(?:minus|negative|moins|menos|meno|минус|eksi)\s"
    r"|负|負|零下|マイナス)\s?[€$£¥₹]?\s?\Z"
)
"""A sign, but not that of a range, and not the French or Spanish for "at least"."""
_LONGEST_MINUS: Final = 20

_PARTING: Final = regex.compile(r"[.,:']")
_GROUPED: Final = regex.compile(r"[1-9]\d{0,2}(?:[.,']\d{3})+")
_GROUPED_OR_DECIMAL: Final = regex.compile(r"([1-9]\d{0,2})[.,](\d{3})")
_GROUPED_DECIMAL: Final = regex.compile(
    r"(\d{1,3}(?:,\d{3})+)\.(\d+)|(\d{1,3}(?:[.']\d{3})+),(\d+)|(\d{1,3}(?:'\d{3})+)\.(\d+)"
)

_WORDS: Final = {plain(word): float(value) for value, words in TABLES["numbers"].items() for word in words}
_ORDINALS: Final = {plain(word): value for value, words in TABLES["ordinals"].items() for word in words}
_UNITS: Final[Mapping[str, str]] = {plain(word): unit for unit, words in TABLES["units"].items() for word in words}
_STEMS: Final = sorted(word for word, value in _WORDS.items() if value > 1 and len(word) >= 4 and word != "cent")

_DECIMAL_SIGNS: Final = frozenset({"point", "komma", "virgule", "coma", "virgola", "oh"})
"""What stands for a decimal sign in words, or for a zero."""

_BETWEEN_PARTS: Final = frozenset({*_DECIMAL_SIGNS, *_UNITS, "uhr"})
"""What stands between the parts of a decimal number or a time in words: "three euros fifty"."""

_JOINING: Final = frozenset({"and", "und", "et", "y", "e", "en"})

_FOUR_SCORE: Final = regex.compile(r"quatre[\s\-]vingts?")
_NEXT_WORD: Final = regex.compile(r"[\s\-]*(\p{L}+)")

_HAN_DIGITS: Final = {
    c: value for value, chars in enumerate(("〇零", "一", "二两兩", *"三四五六七八九")) for c in chars
}
_HAN_TENS: Final = {"十": 10, "百": 100, "千": 1_000}
_HAN_MYRIADS: Final = {"万": 10_000, "萬": 10_000, "億": 100_000_000, "亿": 100_000_000}


_DIGITS_AND_MYRIADS: Final = regex.compile(r"(?<!\p{Nd})(?:\p{Nd}++(?:\.\p{Nd}++)?[千百]?[万萬億亿만억])+")
_MYRIADS_PART: Final = regex.compile(r"(\p{Nd}+(?:\.\p{Nd}+)?)([千百]?)(.)")


def _without_myriads(match: regex.Match[str]) -> str:
    """Return a number of digits and a Han or Korean power of ten, such as 250万 or 1億2000万, in digits alone."""
    scales = {**_HAN_MYRIADS, **_HAN_TENS, "만": 10_000, "억": 100_000_000, "": 1}
    parts = _MYRIADS_PART.findall(match.group())
    return f"{sum(float(number) * scales[tens] * scales[myriad] for number, tens, myriad in parts):.15g}"


_CLOCK: Final = regex.compile(
    r"(?<![\w-])(?:(?P<minutes>five|ten|twenty(?:[\s-]five)?|fünf|zehn|zwanzig)\s(?P<away>past|nach|vor)\s(?P<halved>halb\s)?"
    # "the quarter" is a part of something, or of a year, and may be given "to three people"
    r"|(?:(?<!\b(?:the|this|that|last|next|each|every|das|dieses|letzte|jedes)\s)|(?=\w+\s(?:past|nach|vor)\b))"
    r"(?P<quarter>(?:drei\s?)?viertel|quarter)(?P<after>\s(?:past|to|nach|vor))?\s"
    r"|(?P<half>half\spast|halb)\s)(?P<hour>\p{L}+|\p{Nd}{1,2})(?![\w-]|[.,:]\d|\s(?:"
    r"prozent|percent|sekunden|minuten|stunden?|tage[n]?|wochen?|monate[n]?|jahre[n]?|seconds|minutes|hours|days|weeks|months|years))"
)
"""A time as it is told by the clock's face, such as "half past ten", "Viertel vor elf" and "halb elf"."""


def _clock_time(found: regex.Match[str]) -> tuple[int, int] | None:
    """Return the hour and the minute of a time as it is told by the clock's face; None for another text."""
    told = found["hour"]
    hour = int(told) if told.isdecimal() else value_of(told)
    is_of_year = found["quarter"] == "quarter" and not found["after"]
    if hour is None or hour % 1 or not 1 <= hour <= 24 or is_of_year:
        return None
    if found["minutes"]:
        away = value_of(found["minutes"]) or sum(
            value_of(part) or 0.0 for part in found["minutes"].replace("-", " ").split()
        )
        minutes = (-30 if found["halved"] else 0) + (-away if found["away"] == "vor" else away)
    elif found["half"]:
        minutes = 30 if found["half"].startswith("half") else -30
    elif found["after"]:
        minutes = 15 if found["after"].strip() in {"past", "nach"} else -15
    else:
        minutes = -15 if found["quarter"].startswith("drei") else -45
    of_day = int((60 * hour + minutes) % (24 * 60))
    return of_day // 60, of_day % 60


def _in_figures(found: regex.Match[str]) -> str:
    """Return a time that is told by the clock's face in figures: "10:30"."""
    words: str = found.group()
    time = _clock_time(found)
    return words if time is None else f"{time[0]}:{time[1]:02}"


class Figure(NamedTuple):
    """A number as its digits, with the unit beside it, and whether it was spelt in words or in digits."""

    value: str
    unit: str = ""
    spelled: bool = False
    parts: tuple[str, ...] = ()
    """The whole numbers of a time, date or decimal number: somebody may say these one after the other."""
    follows_another: bool = False
    """Whether nothing parts it from another number in words: together they may be one."""
    readings: tuple[str, ...] = ()
    """The values of a number such as 1.500, which is in groups in some countries and decimal in others."""
    between: str | None = None
    """What stands between this and the number before."""

    @property
    def is_decimal(self) -> bool:
        """Whether its parts are those of a decimal number."""
        return len(self.parts) == 2 and "." in self.value

    def goes_on(self, before: Figure, between: str = " ") -> bool:
        """Return whether it may be the end of one number that is read out from the number ``before`` on."""
        if self.between is None or self.value.startswith("-"):
            return False
        return not self.between.strip(between + "-" * (self.spelled and before.spelled))


class FiguresSaid:
    """The numbers and units of what was said, in which those of a sentence are looked up."""

    def __init__(self, texts: Iterable[FiguresSaid]) -> None:
        self._values: frozenset[str] = frozenset()
        self._perhaps: frozenset[str] = frozenset()
        self._units: frozenset[str] = frozenset()
        self._pairs: frozenset[tuple[str, str]] = frozenset()
        self._neighbours: frozenset[tuple[str, str]] = frozenset()
        self._digits: tuple[str, ...] = ()
        self._perhaps_digits: tuple[str, ...] = ()
        for each in texts:
            self._values |= each._values
            self._perhaps |= each._perhaps
            self._units |= each._units
            self._pairs |= each._pairs
            self._neighbours |= each._neighbours
            self._digits += each._digits
            self._perhaps_digits += each._perhaps_digits

    @classmethod
    def of(cls, text: str, figures: Sequence[Figure]) -> FiguresSaid:
        """Return the numbers and units of a plain text that has these ``figures``."""
        said, words = cls(()), frozenset(words_of(text))
        beside = [(before, figure) for before, figure in pairwise(figures) if figure.goes_on(before)]
        said._values = frozenset(
            {figure.value for figure in figures}
            | {part for figure in figures if not figure.is_decimal for part in figure.parts}
            | {_ORDINALS[word] for word in words & _ORDINALS.keys()}
            | {before.value + figure.value for before, figure in beside if len(before.value) == len(figure.value) == 2}
            | {_multiplied(before, figure) for before, figure in pairwise(figures)}
        )
        said._perhaps = frozenset(
            {reading for figure in figures for reading in figure.readings}
            | {figure.value[1:] for figure in figures if figure.value.startswith("-")}
            | {part for figure in figures if figure.is_decimal and figure.parts[0] != "0" for part in figure.parts}
        )
        said._units = frozenset(
            {_UNITS[word] for word in words & _UNITS.keys()}
            | {figure.unit for figure in figures if figure.unit}
            | _unspaced_units(text)
        )
        said._pairs = frozenset((figure.value, figure.unit) for figure in figures)
        said._neighbours = frozenset(
            (before.value, figure.value)
            for before, figure in pairwise(figures)
            if figure.goes_on(before) or str(figure.between).strip(" -") in _BETWEEN_PARTS
        )
        for told in _CLOCK.finditer(text):
            if (time := _clock_time(told)) is not None:
                hour, minute = time
                said._neighbours |= {(str(hour), str(minute)), (str((hour + 12) % 24), str(minute))}
        said._digits = (_digit_by_digit(figures, " "),)
        said._perhaps_digits = (_digit_by_digit(figures, " ,-"),)
        return said

    @property
    def counts(self) -> frozenset[str]:
        """Return the numbers that are more than an article."""
        return frozenset(value for value, _ in self._pairs if value != ONE)

    @property
    def values(self) -> frozenset[str]:
        """Return the numbers and the places in an order, such as 3 for "third"."""
        return self._values

    def has(self, figure: Figure) -> bool:
        """Return whether the number was said, and with its unit, if it has one."""
        readings = (figure.value, *figure.readings)
        said = any(map(self._has_value, readings)) or bool(
            figure.parts and self._neighbours.issuperset(pairwise(figure.parts))
        )
        if not said and figure.value.endswith(".5"):
            said = self._values.issuperset({figure.value[:-2], "0.5"})
        if not said or not figure.unit:
            return said
        units = {unit for value, unit in self._pairs if value in readings}
        return figure.unit in units if units and "" not in units else figure.unit in self._units

    def may_have(self, figure: Figure) -> bool:
        """Return whether the number may be what was said: but for its sign, read otherwise, or in parts."""
        if figure.unit and figure.unit not in self._units:
            return False
        return (
            not self._perhaps.isdisjoint((figure.value, *figure.readings))
            or _is_run_in(self._perhaps_digits, figure.value)
            or (figure.value.startswith("-") and self._has_value(figure.value[1:]))
            or bool(figure.parts and (self._values | self._perhaps).issuperset(figure.parts))
        )

    def lacks_unit(self, figure: Figure) -> bool:
        """Return whether the number was said without any unit, so that its unit may be told by what was said before."""
        return self.has(figure._replace(unit="")) and not any(
            unit for value, unit in self._pairs if value in (figure.value, *figure.readings, *figure.parts)
        )

    def _has_value(self, value: str) -> bool:
        return value in self._values or _is_run_in(self._digits, value)


def _multiplied(whole: Figure, rest: Figure) -> str:
    """Return a decimal number in words that is multiplied, such as "two point four million"; the rest if it is none."""
    digits = _MULTIPLIED.fullmatch(rest.value)
    is_decimal = str(rest.between).strip() in _DECIMAL_SIGNS and whole.value.isdigit() and len(whole.value) <= 3
    if digits is None or not is_decimal:
        return rest.value
    part, zeros = digits.groups()
    return f"{whole.value}{part}{zeros[len(part) :]}".lstrip("0")


_MULTIPLIED: Final = regex.compile(r"([1-9]\d?)((?:000)+)")


def _is_run_in(runs: Iterable[str], value: str) -> bool:
    return 1 < len(value) <= _LONGEST_RUN and value.isdigit() and any(value in digits for digits in runs)


_REPEATED: Final = regex.compile(r"\b(double|triple|doppel|dreifach)[ -]?(\p{L}+|\p{Nd})\b")


def with_digits_repeated(text: str) -> str:
    """Return a plain text with a digit as often as it was said to stand: "double one" for 11, "Doppel-Null" for 00."""

    def repeated(found: regex.Match[str]) -> str:
        is_digit = found[2].isdecimal() or value_of(found[2]) in range(10) or found[2] == "oh"
        times = 3 if found[1] in {"triple", "dreifach"} else 2
        return " ".join([found[2]] * times) if is_digit else found.group()

    spread: str = _REPEATED.sub(repeated, text)
    return spread


def figures_of(text: str) -> Iterator[Figure]:
    """Yield the numbers of a :func:`~context_builder.analysis.evidence.words.plain` text."""
    text = _CLOCK.sub(_in_figures, with_digits_repeated(text))
    text = _DIGITS_AND_MYRIADS.sub(_without_myriads, _FOUR_SCORE.sub("huitante", text))
    last = None
    for start, end, figure in places_of_figures(text):
        signed = figure.value != "0" and _MINUS_BEFORE.search(text, max(0, start - _LONGEST_MINUS), start)
        value = f"-{figure.value}" if signed else figure.value
        readings = tuple(f"-{reading}" for reading in figure.readings) if signed else figure.readings
        yield figure._replace(value=value, readings=readings, between=None if last is None else text[last:start])
        last = end


def places_of_figures(text: str) -> list[tuple[int, int, Figure]]:
    """Return where each number of a plain text begins and ends, with the number."""
    return sorted(_places_of_figures(text), key=itemgetter(0))


def _places_of_figures(text: str) -> Iterator[tuple[int, int, Figure]]:
    """Yield where a number begins and ends, and the number, those in words a little late."""
    number, start, end, follows = _Spelled(), 0, 0, False
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match.group()
        value = value_of(token) if kind == "word" else None
        if kind == "digits" and _is_multiplied(text, match.end()):
            value = float(_written(token)) if _written(token).count(".") < 2 and len(token) < _LONGEST_RUN else None
        if value is not None:
            if number and not number.takes(value, text[end : match.start()]):
                yield start, end, number.figure(_unit_beside(text, start, end), follows_another=follows)
                number, follows = _Spelled(), not text[end : match.start()].strip(" -")
            start = start if number else match.start()
            number.take(value)
            end = match.end()
        elif kind == "digits":
            figure = _in_digits(token)
            yield *match.span(), figure._replace(unit=_unit_beside(text, *match.span()))
        elif kind == "han" and (han := _han(token)) is not None:
            yield *match.span(), Figure(str(han), _unit(text, match.end()), spelled=len(token) == 1)
    if number:
        yield start, end, number.figure(_unit_beside(text, start, end), follows_another=follows)


def _in_digits(token: str) -> Figure:
    if token.isdigit():
        return Figure(_digits(token))
    ascii_ = _ascii(token)
    if either := _GROUPED_OR_DECIMAL.fullmatch(ascii_):
        return Figure(ascii_, readings=(either[1] + either[2], _decimal(*either.groups())))
    parts = () if _GROUPED.fullmatch(ascii_) else tuple(map(_digits, _PARTING.split(ascii_)))
    return Figure(_written(token), parts=parts if len(parts) > 1 else ())


def _is_multiplied(text: str, end: int) -> bool:
    """Return whether a word such as million comes next."""
    word = _NEXT_WORD.match(text, end)
    return word is not None and _WORDS.get(word[1], 0) >= 100


class _Spelled:
    """Puts together a number of its words, each of which multiplies or adds to those before."""

    def __init__(self) -> None:
        self._values = 0
        self._thousands = self._below = 0.0

    def __bool__(self) -> bool:
        return self._values > 0

    def takes(self, value: float, between: str) -> bool:
        """Return whether a word of this ``value`` goes on with the number, given what stands ``between``."""
        joining = between.strip(" -")
        if joining and (joining not in _JOINING or (value >= 20 and self._below < 100)):
            return False
        if value >= 1000:
            return 0 < self._below < 1000
        if value < 1 or self._below % 1:
            return False
        if value == 100:
            return 0 < self._below < 100
        if value > 100:
            return not self._below and self._thousands > 0
        tens = self._below % 100
        return (tens == 0 and self._below + self._thousands > 0) or (
            tens in range(20, 100, 10) and 0 < value < (20 if tens in {60, 80} else 10)
        )

    def take(self, value: float) -> None:
        self._values += 1
        if value == 100 and self._below:
            self._below *= value
        elif value >= 1000:
            self._thousands += max(1.0, self._below) * value
            self._below = 0.0
        else:
            self._below += value

    def figure(self, unit: str, *, follows_another: bool) -> Figure:
        return Figure(f"{self._thousands + self._below:.15g}", unit, spelled=True, follows_another=follows_another)


@lru_cache(maxsize=4_096)
def value_of(word: str) -> float | None:
    """Return the value of a number word, or of two written as one: ``achtunddreißig``, ``trentotto``."""
    if word in _WORDS or len(word) > _LONGEST_WORD:
        return _WORDS.get(word)
    for cut in range(3, len(word) - 1):
        first, rest = _part(word[:cut]) or value_of(word[:cut]), word[cut:]
        second = next(filter(None, map(_part, (rest, rest.removeprefix("und"), rest.removeprefix("en")))), None)
        if second is None and first is not None and first >= 100:
            second = value_of(rest)
        if first is None or second is None:
            continue
        if second in {100, 1000} and first < second:
            return first * second
        low, high = sorted((first, second))
        if 1 <= low < 10 < high < 100 and high % 10 == 0:
            return low + high
        if any(first >= scale and first % scale == 0 and 1 <= second < scale for scale in (100, 1000)):
            return first + second
    return None


@cache
def _number_stem() -> regex.Pattern[str]:
    """Return what finds number words in others, such as ``zwanzig`` in ``einundzwanzigsten``, the short ones at their
    beginning alone; compiled at first use, since few processes ask a model."""
    return regex.compile(f"^(?:{'|'.join(_STEMS)})|{'|'.join(word for word in _STEMS if len(word) > 4)}")


def is_read_in_part(text: str, figures: Iterable[Figure]) -> bool:
    """Return whether a plain text, which has these ``figures``, spells numbers that are not surely read.

    That is an inflected word (``einundzwanzigsten``), a number in groups (``four twenty``), or one with a decimal sign
    in words (``two point four``).
    """
    if any(figure.follows_another for figure in figures):
        return True
    words = [part for word in words_of(text) for part in word.split("-")]
    if any(sign in _DECIMAL_SIGNS and value_of(before) is not None for before, sign in pairwise(words)):
        return True
    return any(value_of(word) is None and word not in _ORDINALS and _number_stem().search(word) for word in words)


def _part(word: str) -> float | None:
    """Return the value of a part of a number word, whose last vowel may have gone: ``trent`` of ``trenta``."""
    if word in _WORDS:
        return _WORDS[word]
    return next((_WORDS[word + vowel] for vowel in "ai" if _WORDS.get(word + vowel, 0) >= 20), None)


_LONGEST_WORD: Final = 40
"""Letters of a number word."""


def _digit_by_digit(figures: Sequence[Figure], between: str) -> str:
    """Return the digits of numbers that are read out one by one, with blanks where more than ``between`` parts them."""
    digits = []
    for before, figure in pairwise([Figure(""), *figures]):
        digits += ["" if figure.goes_on(before, between) else " ", figure.value if len(figure.value) == 1 else " "]
    return "".join(digits)


_LONGEST_RUN: Final = 20
"""Digits of the longest number that is read out digit by digit."""


def _unit(text: str, end: int) -> str:
    match = _UNIT_AFTER.match(text, end)
    if match is None:
        return ""
    if match["unspaced"]:
        return next(iter(_unspaced_units(match["unspaced"], anywhere=False)), "")
    return _UNITS.get(str(match["sign"] or match["word"]), "")


def _unit_beside(text: str, start: int, end: int) -> str:
    """Return the unit after a number, or the sign of a currency before it."""
    sign = _SIGN_BEFORE.search(text, max(0, start - 2), start)
    return _UNITS[str(sign.group()).strip()] if sign else _unit(text, end)


def _unspaced_units(text: str, *, anywhere: bool = True) -> set[str]:
    return {unit for word, unit in _UNSPACED_UNITS if (word in text if anywhere else text.startswith(word))}


_UNSPACED_UNITS: Final = sorted(
    ((word, unit) for word, unit in _UNITS.items() if regex.match(rf"[{UNSPACED}]", word)),
    key=lambda each: -len(each[0]),
)


def _written(token: str) -> str:
    """Return a number in ASCII digits, without grouping and needless zeros."""
    ascii_ = _ascii(token)
    if _GROUPED.fullmatch(ascii_):
        return _digits(regex.sub(r"\D", "", ascii_))
    if parts := _GROUPED_DECIMAL.fullmatch(ascii_):
        whole, rest = filter(None, parts.groups())
        return _decimal(regex.sub(r"\D", "", whole), rest)
    if ":" in ascii_ or len(_PARTING.findall(ascii_)) > 1:
        return ascii_
    whole, _, rest = ascii_.replace(",", ".").replace("'", ".").partition(".")
    return _decimal(whole, rest)


def _decimal(whole: str, rest: str) -> str:
    rest = rest.rstrip("0")
    return _digits(whole) + (f".{rest}" if rest else "")


def _digits(token: str) -> str:
    return _ascii(token).lstrip("0") or "0"


def _ascii(token: str) -> str:
    return token if token.isascii() else "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in token)


def _han(token: str) -> int | None:
    """Return the value of a number in Han characters; None for what are but words, such as 万一 and 千万."""
    if token[0] in "百千" or token[0] in _HAN_MYRIADS:
        return None
    if all(c in _HAN_DIGITS for c in token):
        return int("".join(str(_HAN_DIGITS[c]) for c in token[:_LONGEST_RUN]))
    total = part = digit = 0
    for c in token[:_LONGEST_RUN]:
        if c in _HAN_DIGITS:
            digit = _HAN_DIGITS[c]
        elif c in _HAN_TENS:
            part, digit = part + (digit or 1) * _HAN_TENS[c], 0
        else:
            total, part, digit = total + (part + digit) * _HAN_MYRIADS[c], 0, 0
    return total + part + digit
