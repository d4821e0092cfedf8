"""Markdown of minutes and meeting tools becomes the plain text that they write elsewhere.

``**[00:03] Ida:** …``, ``**Ida (00:03):** …``, ``0:03 - **Ida**``, ``- **Ida**: …``, ``> **Ida** 00:03``, and headings
that say who speaks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from context_builder.transcript.labels import is_written_as_name
from context_builder.transcript.offsets import HALF

_BEFORE: Final = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?=\*\*[^*\n]{1,80}\*\*)|>\s?")
_DASH: Final = re.compile(r"\s?[-–—]\s?")
_CLOCK: Final = r"(?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,]\d{1,3})?"
_ALONE: Final = re.compile(
    rf"^[ \t]*(?:[-*+>][ \t]+)?(?P<mark>\*\*|__|\*|_|`)(?P<time>[\[(]?{_CLOCK}(?:{_DASH.pattern}{_CLOCK})?[\])]?)"
    r"[ \t]*:?(?P=mark):?(?=\s)",
    re.MULTILINE,
)
"""A time alone with marks around it, before what was said."""

_TAGGED: Final = re.compile(
    r"^(?P<before>[ \t>]{0,8}(?:[-*+][ \t])?)<(?P<tag>b|strong|u|i|em)>(?P<label>[^<>*\n]{1,80})</(?P=tag)>",
    re.MULTILINE,
)
"""What stands in a tag of HTML that begins a line, such as a name."""

_LINKED: Final = re.compile(
    r"^([ \t]*(?:[-*+][ \t]+)?)\[(?P<time>[\[(]?(?:\d{1,2}:)?\d{1,3}:\d{2}[\])]?)\]"
    r"\((?:[^()\s]|\([^()\s]{0,80}\)){1,300}\)",
    re.MULTILINE,
)
"""A time that is a link into the recording."""

_QUOTED: Final = re.compile(r">\s?(?:\[!\w{1,20}\][+-]?\s*)?")
"""Begins a line of a quotation, or of a callout, where all lines are of some."""

_ANSWERED: Final = re.compile(r">\s?>")
"""Begins a line that somebody quotes who is quoted."""

_MARKS: Final = r"[*_`]{0,3}"
_TIME: Final = (
    rf"(?P<open>{_MARKS}[\[(]?{_MARKS})(?P<time>{_CLOCK}{HALF}?)(?:\s?(?:[-–—→]|-+>)\s?(?P<end>{_CLOCK}))?"
    rf"{_MARKS}[\])]?{_MARKS}"
)
_FIRST: Final = r"\s*(?:[-*+]\s+|#{1,6}\s+)?(?:[^\w\s*\[(`#|-]{1,3}\s+)?"
_NAME: Final = r"(?P<name>[^*\n]{1,80}?)(?P<colon>:?)"
_SIGN: Final = r"\s*(?P<sign>[-–—|•·,@]?)\s*"
_REST: Final = r"(?P<behind>:?)(?!\*)(?P<rest>.*)"
_NAMED_AND_TIMED: Final = tuple(
    re.compile(f"{_FIRST}{form}")
    for form in (
        rf"_?\*{{1,2}}{_NAME}\*{{1,2}}_?(?P<between>:?){_SIGN}{_TIME}{_REST}",
        rf"{_TIME}{_SIGN}_?\*{{1,2}}{_NAME}\*{{1,2}}_?{_REST}",
        rf"_?\*\*{_NAME}{_SIGN}{_TIME}:?\*\*_?{_REST}",
        rf"_?\*\*{_TIME}{_SIGN}{_NAME}\*\*_?{_REST}",
    )
)
"""Who speaks, in bold or italics, and when, in either order, in one pair of marks or two: ``**Ida** _[0:03]_``,
``- [0:03 - 0:05] **Ida**: …``, ``**Ida | 0:03**``, ``**[0:03] Ida:** …``."""

_WITHIN: Final = 2
"""The form with a name and a time behind it in one pair of marks."""

_TIMED_HEADING: Final = re.compile(
    rf"^#{{1,6}} +(?P<name>[^#*\n]{{1,60}}?) +[\[(](?P<time>{_CLOCK})[\])]:?[ \t]*$|"
    rf"^#{{1,6}} +(?P<who>[^#*\n]{{1,60}}?) +[-–—|·•@] +(?P<when>{_CLOCK})[ \t]*$",
    re.MULTILINE,
)
"""``### Ida (0:03)``, ``### Ida — 0:03``."""

_WIKI_HEADING: Final = re.compile(r"^(?P<mark>={2,6}) (?P<title>[^=\n]{1,120}?) (?P=mark)[ \t]*$", re.MULTILINE)
"""``== Ida (0:03) ==``, a heading in wikis."""

_TIME_IN_HEADING: Final = re.compile(
    rf"^#{{1,6}} +[\[(]?(?P<time>{_CLOCK})[\])]? *[-–—|·•:]? *(?P<name>[^\W\d][^#*\n]{{0,59}}?):?[ \t]*$", re.MULTILINE
)
"""``### 0:03 - Ida``, where some name comes again: chapters have times, too."""

_UNDERLINED: Final = re.compile(r"^([ \t]*(?:[-*+][ \t]+)?)__([^_*\n]{1,60})__(?=\W)", re.MULTILINE)
_TIME_BELOW: Final = re.compile(
    rf"^[ \t]*\*\*(?P<name>[^*\n]{{1,60}}?):?\*\*[ \t]*\n[ \t]*[\[(]?(?P<time>{_CLOCK})[\])]?[ \t]*$", re.MULTILINE
)
"""A name in bold with a time alone below."""

_NAME_BEFORE_DATE: Final = re.compile(
    r"^\*\*(?P<name>[^*\n]{1,60})\*\*(?=\s{0,3}[-–—|·•,(\[]?\s?(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})\b)",
    re.MULTILINE,
)
_DATED: Final = re.compile(r"_\*\*(?P<name>[^*\n()]{1,40}?)(?: \([^*\n()]{1,80}\))?\*\*_\s*")
"""Above each message of a chat with an agent that programs: ``_**User (2025-12-02 12:49Z)**_``, ``_**Assistant**_``."""

_UNSAID: Final = (("<think>", "</think>"), ("<details>", "</details>"), ("<tool-use", "</tool-use>"))
"""What such a chat has between: what a model thinks, and what its tools do."""

_RULE: Final = re.compile(r"^---\s*$", re.MULTILINE)
_HEADING: Final = re.compile(r"#{1,6}\s+(?P<name>[^#\n]{1,60}?):?\s*#*")


_FRONT: Final = re.compile(r"\s*---[ \t]*\n(?:(?=[^\n]*\S)[^\n]*\n){1,60}?---[ \t]*\n")
"""YAML that tells of a note, above it."""

_TRANSCRIPT: Final = re.compile(
    r"(?P<level>#{1,6})\s+\W*(?:(?:full|raw|clean|meeting|complete|verbatim|vollständiges?) )?"
    r"(?:transcript(?:ion|ie)?s?|transkript(?:ion)?|transcripción|transcrição|trascrizione|transkrypcja|"
    r"расшифровка|транскрипт|文字起こし|逐字稿|转录|文字记录|녹취록)\W*",
    re.IGNORECASE,
)
_ANY_HEADING: Final = re.compile(r"(?P<level>#{1,6})\s+(?P<title>\S.*)")
_FEWEST: Final = 2
"""Lines that the transcript in a note has at least."""

_SPEAKS: Final = re.compile(
    rf"[*_\[(`]{{0,4}}(?:{_CLOCK}[\])]?[*_` ]{{0,4}}[-–—|]?[*_ ]{{0,4}})?(?P<who>[^\W\d_][^:*\n]{{0,59}}?)"
    rf"[*_` ]{{0,4}}(?::[*_ ]|[\[(| ]{{1,4}}{_CLOCK}[\])]?[*_:]{{0,4}}\s{{0,4}}$)"
)
"""Begins what somebody says: a name before a colon or a time, which may stand before it, too."""

_OF_MODEL: Final = re.compile(
    r"(?:#{1,6} )?[*_]{0,3}(?:You|User|Human|Assistant|Agent|ChatGPT|Claude|Gemini|Copilot|Grok)"
    r"(?: said| \([^()\n]{1,60}\))?(?::|[*_]{2})"
)


def is_of_model(line: str) -> bool:
    """Return whether somebody begins to speak in a chat with a model, whose answers have headings of their own."""
    return _OF_MODEL.match(line) is not None


def transcript_in(text: str) -> tuple[list[str], str]:
    """Return the lines of a note around its transcript, and the text with empty lines for them.

    The transcript is below a heading that says so, up to the next one of its level behind the last that is a time or,
    as it comes again, who speaks. What stands above a text in YAML is around it, too.
    """
    lines = text.split("\n")
    first = _FRONT.match(text)
    keys = {line.partition(":")[0] for line in first[0].split("\n") if ":" in line} if first else set()
    is_record = first is not None and not keys.isdisjoint(
        line.partition(":")[0] for line in text[first.end() :].split("\n") if ":" in line
    )
    begin, end = first[0].count("\n") if first and not is_record else 0, len(lines)
    headings = [(place, one) for place, line in enumerate(lines) if (one := _ANY_HEADING.fullmatch(line.rstrip()))]
    titles = Counter(one["title"] for _, one in headings)
    if (found := next((one for one in headings if _TRANSCRIPT.fullmatch(one[1][0])), None)) is not None:
        place, level = found[0], len(found[1]["level"])
        below = [(at, one["title"]) for at, one in headings if at > place and len(one["level"]) <= level]
        spoken = [at for at, title in below if titles[title] > 1 or re.search(rf"\W?{_CLOCK}\W*$", title)]
        spoken += _parts(lines, place, [at for at, _ in below])
        stop = next((at for at, _ in below if at > max(spoken, default=place)), len(lines))
        is_answer = any(map(is_of_model, (*lines[:place], *lines[stop:])))
        if not is_answer and sum(bool(line.strip()) for line in lines[place + 1 : stop]) >= _FEWEST:
            begin, end = place + 1, stop
    around = [line for line in (*lines[:begin], *lines[end:]) if line.strip()]
    return around, "\n".join(("",) * begin + tuple(lines[begin:end])) if around else text


def _parts(lines: Sequence[str], begin: int, headings: Sequence[int]) -> Iterator[int]:
    """Yield the headings below which those go on to speak who do below the transcript's own, line ``begin``."""
    ends = [*headings, len(lines)]
    people = {one["who"] for line in lines[begin + 1 : ends[0]] if (one := _SPEAKS.match(line))}
    for start, end in pairwise(ends):
        names = [one["who"] for line in lines[start + 1 : end] if (one := _SPEAKS.match(line))]
        if sum(name in people for name in names) >= _FEWEST:
            people |= {*names}
            yield start


def unmarked(text: str) -> str:
    """Return a text without Markdown around the times and names of who speaks; any other is as it was."""
    lines = [line for line in text.split("\n") if line.strip()] if text.lstrip().startswith(">") else []
    if lines and all(line.startswith(">") and not _ANSWERED.match(line) for line in lines):
        text = "\n".join(_QUOTED.sub("", line, count=1) for line in text.split("\n"))
    text = _TAGGED.sub(r"\g<before>**\g<label>**", text) if "</" in text else text
    text = _LINKED.sub(lambda found: f"[{found['time'].strip('[]()')}]", text)
    text = _ALONE.sub(lambda found: _bracketed(found["time"]), text)
    text = _WIKI_HEADING.sub(r"## \g<title>", text) if "==" in text else text
    text = _TIMED_HEADING.sub(lambda one: f"{one['name'] or one['who']}  {one['time'] or one['when']}", text)
    names = [one["name"] for one in _TIME_IN_HEADING.finditer(text)] if "#" in text else []
    if len(set(names)) < len(names):
        text = _TIME_IN_HEADING.sub(r"\g<name>  \g<time>", text)
    text = _UNDERLINED.sub(r"\1**\2**", text) if "__" in text else text
    text = _TIME_BELOW.sub(r"\g<name>  \g<time>", text) if "**" in text else text
    text = _NAME_BEFORE_DATE.sub(r"\g<name>", text) if "**" in text else text
    if "_**" in text and len(dated := _DATED.findall(text)) > len(set(dated)):
        text = _DATED.sub(r"\g<name>:\n", _said(text))
    if "*" in text:
        text = "\n".join(_line(line) if "*" in line else line for line in text.split("\n"))
    if "**" in text:
        return text
    return _headings_as_labels(text) if text.lstrip().startswith("#") or "\n#" in text else text


def _bracketed(time: str) -> str:
    return f"[{_DASH.sub(' --> ', time.strip('[]()'))}]"


def _said(text: str) -> str:
    """Return a chat without what nobody says, and without the rules between its messages."""
    for begin, end in _UNSAID:
        kept, place = [], 0
        while (start := text.find(begin, place)) >= 0 and (stop := text.find(end, start)) >= 0:
            kept.append(text[place:start])
            place = stop + len(end)
        text = "".join((*kept, text[place:]))
    return _RULE.sub("", text)


def _line(line: str) -> str:
    """Return a line with its name and its time as others write them, without marks."""
    line = _BEFORE.sub("", line, count=1) if _BEFORE.match(line) else line
    for place, form in enumerate(_NAMED_AND_TIMED):
        found = form.fullmatch(line)
        if found is None or ":" in (name := found["name"].strip(" ])")) or not any(map(str.isalpha, name)):
            continue
        rest, has_colon = found["rest"].strip(), bool(found["colon"] or found["behind"])
        is_bare = not found["open"]
        if is_bare and place == _WITHIN and not found["sign"]:
            continue  # "Transcription ended after 1:02:03"
        if is_bare and place == 0 and (rest or found["colon"] or found["between"]):
            continue  # a time that somebody says
        if not rest:
            return f"{name}  {found['time']}"
        if place == 0 or has_colon or is_written_as_name(name):
            until = f" --> {found['end']}" if found["end"] else ""
            return f"[{found['time']}{until}] {name}: {rest}"
    return line


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
