"""Strings that a program puts together, from pieces that each look harmless, are read as one.

``"a" + "b"``, ``["a", "b"].join("")``, ``CONCAT('a', 'b')``, ``k = "a"; k += "b"``, over several lines too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_STRING: Final = r"[bfruBFRU]{0,2}(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|`[^`\n]{0,200}`)"
_NAME: Final = r"[A-Za-z_$][\w$.]{0,40}"
_STATEMENT_ENDS: Final = r"\)?[ \t]{0,4}+;?\s{0,16}+"
_GAP: Final = (
    rf"(?P<adds>{_STATEMENT_ENDS}(?:{_NAME}[ \t]?(?:[+.]=|=[ \t]?{_NAME}[ \t]?[+.])|str[ln]?cat\({_NAME},"
    rf"|{_NAME}\.(?:append|write)\()\s{{0,4}}+)"
    r"|(?P<called>\)?\s{0,16}+\.(?:append|concat)\(\s{0,4}+)"
    rf"|(?P<named>{_STATEMENT_ENDS}(?:(?:const|let|var|my|local|export|set)\s)?"
    rf"[$]?(?P<name>{_NAME})[ \t]{{0,4}}+:?=[ \t]{{0,4}}+)"
    r"|(?P<listed>\s{0,16}+,\s{0,16}+)"
    r"|(?P<operated>\)?\s{0,16}+(?:[+.&~]|\|\||\.\.|<<|\\\n)\s{0,16}+\(?)"
    r"|(?P<beside>[ \t]{0,4}+)|(?P<below>\s{0,16}+)"
)
_RUN: Final = re.compile(rf"{_STRING}(?:(?:{re.sub(r'[?]P<[a-z]+>', '?:', _GAP)}){_STRING}){{1,200}}")
_NEXT: Final = re.compile(rf"(?:{_GAP})(?P<string>{_STRING})")
_GOING_ON: Final = ('""', '+""', 'k=""')
"""Any gap of which a text has only the first lines can end in one of these ways."""
_FIRST: Final = re.compile(_STRING)
_JOINED_BEFORE: Final = re.compile(
    r"(?:(?:\"\"|''|``)\.join\(\s{0,4}[\[(]?|concat\(|\{\}[\"']\.format\(|%s[\"']\s{0,2}(?:%\s{0,2}\(?|,)|\{\}[\"'],)\s{0,16}$",
    re.IGNORECASE,
)
_JOINED_BEHIND: Final = re.compile(r"\s{0,4},?\s{0,16}[\])]\s{0,4}\.join\(\s{0,2}(?:\"\"|''|``)\s{0,2}\)")
_BRACKET: Final = re.compile(r"(?:[\[(]\s{0,16})?$")
_FIRST_NAME: Final = re.compile(rf"(?P<name>{_NAME})[ \t]{{0,4}}(?::=|=)[ \t]{{0,4}}$")
_OPENED: Final = re.compile(r"[=(:\[]\s{0,16}$")
_LOOKED_AT: Final = 60
_USED_WITHIN: Final = 200
"""Characters behind strings that have names, in which these are put together."""
_SIGN: Final = re.compile(
    r"(?P<quote>[\"'`])(?P<text>[^\"'`\n]{8,400})(?P=quote)\.(?:replace(?:All)?\([\"'/](?P<replaced>[^\"'\w]{1,3})[\"'/]g?,\s?[\"']{2}\)"
    r"|split\([\"'](?P<split>[^\"'\w]{1,3})[\"']\)\.join\([\"']{2}\))"
)


def put_together(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what stands between strings that become one, in order, each with what is read for it: nothing."""
    for begun, ended in runs(text):
        first = _FIRST.match(text, begun, ended)
        gaps = []
        at = first.end() if first else ended
        while at < ended and (gap := _NEXT.match(text, at, ended)):
            gaps.append(gap)
            at = gap.end()
        joined = _joined_from(text, begun, ended)
        if joined is not None and gaps:
            yield joined, begun, ""
        is_put_together = {
            "listed": joined is not None,
            "named": _are_used(text, begun, gaps, ended),
            "below": bool(_OPENED.search(text, max(0, begun - _LOOKED_AT), begun)),
        }
        for gap in gaps:
            if all(is_so for way, is_so in is_put_together.items() if gap[way] is not None):
                opened = next(at for at in range(gap.start("string"), gap.end()) if text[at] in "\"'`")
                yield gap.start() - 1, opened + 1, ""


def runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where strings stand one behind the other, with nothing but a program's signs and names between."""
    for run in _RUN.finditer(text):
        yield run.span()


def open_run(text: str) -> int | None:
    """Return where strings begin that may go on behind the text, which ends with a line; None if there are none."""
    begun = [start for string in _GOING_ON for start, end in runs(text + string) if end == len(text) + len(string)]
    return min(begun, default=None)


def without_sign(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the strings out of which a program takes a sign: ``"a#b".replace("#", "")``."""
    for found in _SIGN.finditer(text):
        yield *found.span("text"), found["text"].replace(found["replaced"] or found["split"], "")


def _joined_from(text: str, begun: int, ended: int) -> int | None:
    """Return where the call or the list begins that joins the strings; None where nothing joins them."""
    looked_at = max(0, begun - _LOOKED_AT)
    if before := _JOINED_BEFORE.search(text, looked_at, begun):
        return before.start()
    if _JOINED_BEHIND.match(text, ended):
        return _BRACKET.search(text, looked_at, begun).start()  # type: ignore[union-attr]  # it matches nothing, too
    return None


def _are_used(text: str, begun: int, gaps: list[re.Match[str]], ended: int) -> bool:
    """Return whether the names of strings stand one behind the other soon: ``a + b``, ``$A$B``."""
    first = _FIRST_NAME.search(text, max(0, begun - _LOOKED_AT), begun)
    names = [gap["name"] for gap in gaps if gap["name"]]
    if not first or not names:
        return False
    used = rf"{re.escape(first['name'])}\W{{1,6}}{re.escape(names[0])}"
    return bool(re.compile(used).search(text, ended, ended + _USED_WITHIN))
