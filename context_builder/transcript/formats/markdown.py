"""Markdown of minutes and meeting tools becomes the plain text that they write elsewhere.

``**[00:03] Ida:** …``, ``**Ida (00:03):** …``, ``0:03 - **Ida**``, ``- **Ida**: …``, ``> **Ida** 00:03``, and headings
that say who speaks.
"""

from __future__ import annotations

import re
from typing import Final

from context_builder.transcript.labels import is_written_as_name

_TIME: Final = r"[\[(](?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,]\d{1,3})?[\])]"
_BEFORE: Final = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?=\*\*[^*\n]{1,80}\*\*)|>\s?")
_TIMED: Final = re.compile(rf"\s*\*\*(?P<inside>{_TIME}\s*[^*\n]{{1,80}}|[^*\n]{{1,80}}?\s*{_TIME}:?)\*\*(?P<rest>.*)")
_TIME_FIRST: Final = re.compile(rf"{_TIME}\s*")
_BEHIND: Final = re.compile(
    r"(?P<time>[\[(]?(?:\d{1,2}:)?\d{1,3}:\d{2}[\])]?\s*[-–—|]\s*)\*\*(?P<name>[^*\n]{1,80})\*\*"
)
_DASH: Final = re.compile(r"\s?[-–—]\s?")
_CLOCK: Final = r"(?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,]\d{1,3})?"
_ALONE: Final = re.compile(
    rf"^[ \t]*(?:[-*+>][ \t]+)?(?P<mark>\*\*|__|\*|_|`)(?P<time>[\[(]?{_CLOCK}(?:{_DASH.pattern}{_CLOCK})?[\])]?)"
    r"[ \t]*:?(?P=mark):?(?=\s)",
    re.MULTILINE,
)
"""A time alone with marks around it, before what was said."""

_LINKED: Final = re.compile(
    r"^([ \t]*(?:[-*+][ \t]+)?)\[(?P<time>[\[(]?(?:\d{1,2}:)?\d{1,3}:\d{2}[\])]?)\]\([^()\s]{1,300}\)", re.MULTILINE
)
"""A time that is a link into the recording."""

_QUOTED: Final = re.compile(r">\s?(?:\[!\w{1,20}\][+-]?\s*)?")
"""Begins a line of a quotation, or of a callout, where all lines are of some."""

_ANSWERED: Final = re.compile(r">\s?>")
"""Begins a line that somebody quotes who is quoted."""

_HEADING: Final = re.compile(r"#{1,6}\s+(?P<name>[^#\n]{1,60}?):?\s*#*")


def unmarked(text: str) -> str:
    """Return a text without Markdown around the times and names of who speaks; any other is as it was."""
    lines = [line for line in text.split("\n") if line.strip()] if text.lstrip().startswith(">") else []
    if lines and all(line.startswith(">") and not _ANSWERED.match(line) for line in lines):
        text = "\n".join(_QUOTED.sub("", line, count=1) for line in text.split("\n"))
    text = _LINKED.sub(lambda found: f"[{found['time'].strip('[]()')}]", text)
    text = _ALONE.sub(lambda found: _bracketed(found["time"]), text)
    if "**" in text:
        return "\n".join(_line(line) for line in text.split("\n"))
    return _headings_as_labels(text) if text.lstrip().startswith("#") or "\n#" in text else text


def _bracketed(time: str) -> str:
    return f"[{_DASH.sub(' --> ', time.strip('[]()'))}]"


def _line(line: str) -> str:
    line = _BEFORE.sub("", line, count=1) if _BEFORE.match(line) else line
    if timed := _TIMED.fullmatch(line):
        inside, rest = timed["inside"], timed["rest"]
        name = _TIME_FIRST.sub("", inside)
        is_label = name != inside and rest.strip() and ":" not in (name[-1:], rest[:1]) and is_written_as_name(name)
        return f"{inside}{':' if is_label else ''}{rest}"
    return _BEHIND.sub(r"\g<time>\g<name>", line, count=1) if _BEHIND.match(line) else line


def _headings_as_labels(text: str) -> str:
    """Return a text whose headings are labels, where the deepest ones are names of which some come again."""
    lines = text.split("\n")
    found = [
        (place, len(line) - len(line.lstrip("#")), one["name"])
        for place, line in enumerate(lines)
        if (one := _HEADING.fullmatch(line))
    ]
    deepest = max((level for _, level, _ in found), default=0)
    named = [(place, name) for place, level, name in found if level == deepest]
    names = [name for _, name in named]
    if len(set(names)) == len(names) or not all(map(is_written_as_name, names)):
        return text
    for place, name in named:
        lines[place] = f"{name}:"
    return "\n".join(lines)
