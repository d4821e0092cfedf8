"""Passwords and tokens in a table: it is the head of their column that tells what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from context_builder.redaction.named_secrets import SECRET_KINDS, Syntax, is_secret_value
from context_builder.redaction.secret import Secret, has_one_of
from context_builder.redaction.secret_names import HINTS, NameKind, kind_of_name

_SEPARATORS: Final = "|\t,;"
"""Between the cells of Markdown and of files of values."""
_LONGEST_HEAD: Final = 400
_MOST_CELLS: Final = 64
_MARKS: Final = " \t*_`\"'"
"""What may stand around the text of a cell."""
_HEADING: Final = re.compile(r"(?:[^\W_][\w./()#-]{0,30}(?:\s(?=\w))?){0,4}")
_ROW: Final = re.compile(
    r"<(?P<named>t[dh]|dt|label|name|key)(?:\s[^>]{0,200})?>\s{0,8}(?P<name>[\w .-]{2,40})[\s:]{0,4}</(?P=named)>"
    r"\s{0,8}<(?P<valued>td|dd|code|value|string|span)(?:\s[^>]{0,200})?>\s{0,8}(?P<value>[^\s<]{4,1000})\s{0,8}</(?P=valued)>",
    re.IGNORECASE,
)


class Columns:
    """Finds the secrets in the rows of a table, which are given one after the other."""

    def __init__(self) -> None:
        self._separator = ""
        self._count = 0
        self._kinds: Mapping[int, NameKind] = MappingProxyType({})

    def secrets(self, line: str) -> Iterator[Secret]:
        """Yield the secrets of the next line, in order; one that is no row ends the table."""
        if self._kinds and line.count(self._separator) == self._count:
            yield from self._in_cells(line)
        elif not line.isspace() and line:
            self._begin(line)
        if "</" in line:
            yield from _in_row(line)

    def _in_cells(self, line: str) -> Iterator[Secret]:
        begun = 0
        for place, cell in enumerate(line.split(self._separator)):
            value = cell.strip(_MARKS)
            if kind := self._kinds.get(place):
                start = begun + len(cell) - len(cell.lstrip(_MARKS))
                if " " not in value and is_secret_value(value, kind, Syntax.TOLD, quoted=False):
                    yield Secret(start, start + len(value), SECRET_KINDS[kind])
            begun += len(cell) + 1

    def _begin(self, line: str) -> None:
        """Keep which columns hold secrets, if the line is the head of a table."""
        self._kinds = {}
        if len(line) > _LONGEST_HEAD or not has_one_of(HINTS, line.lower()):
            return
        separator = next((one for one in _SEPARATORS if one in line), "")
        cells = [cell.strip(_MARKS) for cell in line.split(separator)] if separator else []
        if len(cells) <= _MOST_CELLS and sum(map(bool, cells)) > 1 and all(map(_HEADING.fullmatch, cells)):
            kinds = {place: kind_of_name(cell) for place, cell in enumerate(cells) if cell}
            self._kinds = {place: kind for place, kind in kinds.items() if kind > NameKind.KEY}
            self._separator, self._count = separator, len(cells) - 1


def _in_row(line: str) -> Iterator[Secret]:
    """Yield the secrets beside their names in the cells of a row in HTML, and in elements of such pairs."""
    for row in _ROW.finditer(line):
        kind = kind_of_name(row["name"])
        if kind > NameKind.KEY and is_secret_value(row["value"], kind, Syntax.TOLD, quoted=False):
            yield Secret(*row.span("value"), SECRET_KINDS[kind])
