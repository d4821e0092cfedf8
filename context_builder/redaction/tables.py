"""Secrets in the rows of tables, whose heads tell what they are, and in pairs of elements and cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final

from context_builder.redaction.codes import codes_alone, names_codes
from context_builder.redaction.named_secrets import SECRET_KINDS, Syntax, is_secret_value
from context_builder.redaction.secret import Secret, has_one_of
from context_builder.redaction.secret_values import HINTS, NameKind, kind_of_name

_SEPARATORS: Final = "|\t,;"
"""Between the cells of Markdown and of files of values."""
_ELEMENT: Final = "<"
"""Stands for the elements of HTML in their place."""
_HEAD_HINTS: Final = (*HINTS, "code", "totp", "2fa")
_LONGEST_HEAD: Final = 400
_MOST_CELLS: Final = 64
_MARKS: Final = " \t*_`\"'"
"""What may stand around the text of a cell."""
_HEADING: Final = re.compile(r"(?:[^\W_][\w./()#-]{0,30}(?:\s(?=\w))?){0,4}")
_PAIR: Final = re.compile(
    r"<(?P<named>[a-z][a-z\d]{0,9})(?:\s[^>]{0,200})?>\s{0,8}(?P<name>[\w .-]{2,40})[\s:]{0,4}</(?P=named)>"
    r"\s{0,8}(?P<valued><[a-z][a-z\d]{0,9}(?:\s[^>]{0,200})?>)\s{0,8}(?P<value>[^\s<]{4,1000})\s{0,8}</",
    re.IGNORECASE,
)
"""Two elements of HTML or XML, of which the first may be the name of the second."""
_TWO_CELLS: Final = re.compile(
    r"[\s|\[({\"'`*]{0,8}(?P<name>[A-Za-z][\w .-]{1,40})[\"'`*]{0,3}"
    r"(?:\s{0,4}[;\t]\s{0,4}|,(?=\S)|(?<=[\"'`*]),\s{0,4}(?=[\"'`*]))[\"'`*]{0,3}"  # talk has a blank behind a comma
    r"(?P<value>[^\s,;\t\"'`|]{8,128})[\"'`*|\])};,\s]{0,8}"
)
_ELEMENT_ROW: Final = re.compile(r"<tr(?:\s[^<>]{0,200})?>(?P<cells>(?:(?!</?tr[\s>]).){0,4000})", re.IGNORECASE)
_ELEMENT_CELL: Final = re.compile(r"<t[dh](?:\s[^<>]{0,200})?>(?P<cell>[^<]{0,1000})", re.IGNORECASE)


class Columns:
    """Finds the secrets in the rows of a table, which are given one after the other."""

    def __init__(self) -> None:
        self._separator = ""
        self._count = 0
        self._kinds: Mapping[int, NameKind] = MappingProxyType({})
        self._codes: frozenset[int] = frozenset()

    def secrets(self, line: str) -> Iterator[Secret]:
        """Yield the secrets of the next line, in order; one that is not a row ends the table."""
        rows = [*_ELEMENT_ROW.finditer(line)] if "<t" in line else []
        for row in rows:
            yield from self._in_row(_ELEMENT, [(one.start("cell"), one["cell"]) for one in _cells_of(line, row)])
        if not rows:
            yield from self._in_line(line)
        yield from _in_pairs(line)

    def _in_line(self, line: str) -> Iterator[Secret]:
        separator = self._separator
        if separator in ("", _ELEMENT) or line.count(separator) + 1 != self._count:
            separator = next((one for one in _SEPARATORS if one in line), "")
        if not line.isspace() and line:
            cells = line.split(separator) if separator else [line]
            starts = accumulate((len(cell) + 1 for cell in cells), initial=0)
            yield from self._in_row(separator, [*zip(starts, cells, strict=False)])

    def _in_row(self, separator: str, cells: Sequence[tuple[int, str]]) -> Iterator[Secret]:
        """Yield the secrets in the cells of a row, if it is below a head; else it may be one."""
        if not (self._kinds or self._codes) or (separator, len(cells)) != (self._separator, self._count):
            self._begin(separator, [cell for _, cell in cells])
            return
        for place, (begun, cell) in enumerate(cells):
            value = cell.strip(_MARKS)
            if place in self._codes:
                if found := codes_alone(cell):
                    yield Secret(begun + found.start, begun + found.end, found.kind)
            elif kind := self._kinds.get(place):
                start = begun + len(cell) - len(cell.lstrip(_MARKS))
                if " " not in value and is_secret_value(value, kind, Syntax.TOLD, quoted=False):
                    yield Secret(start, start + len(value), SECRET_KINDS[kind])

    def _begin(self, separator: str, written: Sequence[str]) -> None:
        """Keep which columns hold secrets, if the row is the head of a table."""
        self._kinds, self._codes = {}, frozenset()
        line = separator.join(written)
        if len(line) > _LONGEST_HEAD or not has_one_of(_HEAD_HINTS, line.lower()):
            return
        cells = [cell.strip(_MARKS) for cell in written] if separator else []
        is_table = sum(map(bool, cells)) > 1 or line.lstrip().startswith("|") or separator == _ELEMENT
        if len(cells) <= _MOST_CELLS and is_table and all(map(_HEADING.fullmatch, cells)):
            kinds = {place: kind_of_name(cell) for place, cell in enumerate(cells) if cell}
            self._kinds = {place: kind for place, kind in kinds.items() if kind > NameKind.KEY}
            self._codes = frozenset(place for place, cell in enumerate(cells) if names_codes(cell))
            self._separator, self._count = separator, len(cells)


def _cells_of(line: str, row: re.Match[str]) -> Iterator[re.Match[str]]:
    return _ELEMENT_CELL.finditer(line, *row.span("cells"))


def _in_pairs(line: str) -> Iterator[Secret]:
    """Yield the secrets beside their names in two elements of HTML or XML, and in two cells that are all of a row."""
    for pair in _PAIR.finditer(line) if "</" in line else ():
        kind = kind_of_name(pair["name"])
        if kind > NameKind.KEY and is_secret_value(pair["value"], kind, Syntax.TOLD, quoted=False):
            yield Secret(*pair.span("value"), SECRET_KINDS[kind])
    if has_one_of(HINTS, line.lower()) and (row := _TWO_CELLS.fullmatch(line)):
        kind, value = kind_of_name(row["name"]), row["value"]
        has_digits = sum(map(str.isdigit, value)) > 1
        if kind > NameKind.KEY and has_digits and is_secret_value(value, kind, Syntax.DASHED, quoted=False):
            yield Secret(*row.span("value"), SECRET_KINDS[kind])
