"""Labels that stand before a text and say who speaks are told here from text that only looks like one.

``[SPEAKER_00]: `` (WhisperX), ``(speaker 0) `` (whisper.cpp) and ``Speaker 1: `` are labels wherever they stand. A name
is free: people call themselves ``Lind, Ida (she/her)``, ``Bo | Acme`` or ``+1 555-0100``. So the file decides. Where
every entry begins ``NAME: ``, whatever stands there is a name; elsewhere only what looks like one and comes again, or
stands before most entries. ``>>`` in captions says that somebody else speaks, and may not say who.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance, name_of, speaker_name

LONGEST_LABEL: Final = 80
"""Characters of a name with all that people write beside it."""

_MACHINE: Final = re.compile(
    r"\s*(?:>>\s*)?(?:"
    r"\[{1,2}(?P<square>(?:speaker|spk|spkr)[ _-]?[\w?]{1,8}|unknown(?: speaker)?)\]{1,2}\s*:?\s*|"
    r"\((?P<round>(?:speaker|spk|spkr)[ _-]?[\w?]{1,8})\)\s*:?\s*|"
    r"(?P<bare>speaker[ _-]?\w{1,3}|speaker_\d{1,4}|unknown speaker)(?:\s\([\d:]+\))?\s*[:\uff1a](?:\s+|$)|"
    r"SPEAKER:\s(?P<tag>S\d{1,3}|UU)\s*$|(?P<alone>speaker[ _-]?\d{1,3})\s*$"
    r")",
    re.IGNORECASE,
)
_PREFIX: Final = re.compile(
    rf"(?P<mark>(?:[-–—>]+\s*)?)(?P<label>[^\s:\uff1a][^:\uff1a\n]{{0,{LONGEST_LABEL - 1}}}?)"
    r"\s?(?::(?:\s+|$)|\uff1a\s*)"
)
_NAME: Final = re.compile(r"[^\W\d_][\w.'’()\- \u0300-\u036f\u0900-\u0dff\u0e31-\u0e4e]{0,39}(?:[№#]\s?\d{1,3})?")
_COUNTED: Final = re.compile(r"(?P<stem>[^\W\d_][^\n]{0,39}?)\s*(?:№|#|\b[Nn](?:r|o|º)\.?)?\s?\d{1,3}")
"""A name with a number, such as ``Спикер №2``."""

_BESIDE: Final = re.compile(r"\s*(?:\([^()]*\)|\|.*)$")
_OF_PARTY: Final = re.compile(
    r"(?:[\w.'’-]{1,40} ){1,7}(?P<last>[^\W\d_][\w.'’-]{1,40}) \([^()]{1,40}\)(?: [-–] [^:]{1,40})?"
)
"""A function, a name, and the party in brackets, as parliaments write them: ``Poseł Anna Nowak (PiS)``."""

_TELEPHONE: Final = re.compile(r"\+\d[\d*() -]{5,24}|\d[\d() -]{0,12}\*[\d*() -]{3,20}")
_MOST_WORDS: Final = 4
_PARTICLES: Final = frozenset(
    "s de la le da do dos di del van von der den ter ten el al bin ibn y e i of the host guest".split()
)
"""Words of names that begin with small letters."""

_BOLD: Final = re.compile(r"\s*\*\*(?P<label>[^*:\n]{1,80})(?::\*\*|\*\*:)\s*")
_CHANGE: Final = re.compile(r"(?:^|(?<=\s))[-–—]?\s*>{2,3}\s*(?=[^\s>])")
"""Somebody else speaks, or (``>>>``) of something else: https://www.fcc.gov/general/captioning-quality."""

_BRACKETED: Final = re.compile(
    r"(?:[-–—]\s?)?(?:\[([^\[\]]{1,60})\]|\(([^()]{1,60})\)|\u3010([^\u3010\u3011]{1,60})\u3011|"
    r"<([^<>/]{2,60})>(?!.*</))\s*(?=[^\s:])"
)
"""``[Ida] …``, ``(IDA) …`` and ``<Ida> …``, which may be what is heard besides: ``(laughs) …``."""

_DASHES: Final = ("-", "–", "—")
_ALONE_IN_BRACKETS: Final = re.compile(r"(?:[-–—]\s?)?(?:\[[^\[\]]{1,60}\]|\([^()]{1,60}\))")
_SOUNDS: Final = frozenset(
    (
        "music", "applause", "laughter", "laughs", "laughing", "silence", "noise", "background noise", "inaudible",
        "crosstalk", "singing", "cheering", "sighs", "sigh", "coughs", "beep", "pause", "foreign", "intro", "outro",
        "musik", "applaus", "beifall", "gelächter", "lachen", "lacht", "stille", "musique", "applaudissements", "rires",
        "música", "musica", "aplausos", "risas", "risos", "applausi", "risate", "muziek", "gelach", "muzyka", "oklaski",
        "музыка", "аплодисменты", "смех", "音楽", "拍手", "笑", "音乐", "掌声", "笑声", "음악", "박수", "웃음",
    )
)  # fmt: skip
"""What is heard besides, in brackets."""

_REACTIONS: Final = _SOUNDS | {
    "heiterkeit", "zuruf", "zurufe", "zwischenruf", "zwischenrufe", "unruhe", "widerspruch", "lachend", "glocke",
    "interruption", "interruptions", "exclamations", "protestations", "sourires", "rumores", "protestas", "proteste",
}  # fmt: skip
"""Also what parliaments write of it."""

_FIRST: Final = 3
"""Words of a remark, one of which is what is heard: ``Anhaltender Beifall bei …``."""

_TURN: Final = re.compile(r"\s*\[SPEAKER_TURN\]\s*")
_REMARKS: Final = frozenset(
    (
        "remember", "note", "notice", "example", "for example", "warning", "caution", "attention", "important", "tip",
        "hint", "reminder", "spoiler", "meaning", "result", "conclusion", "exercise", "step one", "step two", "ps",
        "merke", "achtung", "wichtig", "beispiel", "zum beispiel", "hinweis", "tipp", "fazit", "exemple",
        "par exemple", "remarque", "important", "conseil", "rappel", "ejemplo", "por ejemplo", "nota", "recuerda",
        "importante", "consejo", "exemplo", "por exemplo", "lembre-se", "dica", "ricorda", "esempio", "per esempio",
        "let op", "voorbeeld", "bijvoorbeeld", "viktigt", "exempel", "husk", "eksempel", "uwaga", "przykład",
        "важно", "внимание", "например", "пример", "注意", "例", "例如", "比如", "重要", "参考",
    )
)  # fmt: skip
"""Words before a colon in what one person explains, which are nobody's name."""

_LONGEST_ALONE: Final = 8
"""Words of a name with an office that stands alone on a line, above what was said, again and again."""

_SHARE: Final = 0.6
_SHARE_OF_FEW: Final = 0.5
_FEW: Final = 3
"""Part of the entries that have labels where any that looks like a name is one."""

_RARE: Final = 0.05
"""Part of the entries at least that have names, where these stand where the speaker changes."""

_BRACKETS: Final = re.compile(r"\[([^\[\]]+)\]|\(([^()]+)\)|<([^<>]+)>")


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A line of an entry with the speaker whom its label names; None where it has no label.

    ``begins`` says that somebody else speaks than before, named or not.
    """

    speaker: str | None
    text: str
    begins: bool = False


class Labels:
    """The labels of a file, told by ``first_lines``, the first lines of its entries, and by the ``others``."""

    def __init__(self, first_lines: Sequence[str], others: Iterable[str] = ()) -> None:
        found = [_PREFIX.match(unbold(line)) for line in first_lines if line and not _MACHINE.match(unbold(line))]
        prefixes = [one for one in found if one and _may_be(one["label"])]
        counts = Counter(one["label"] for one in prefixes)
        said = len(found)
        remarks = {one for one in counts if one.lower() in _REMARKS}
        likely = [one for one in prefixes if counts[one["label"]] > 1 or _is_likely(one["label"])]
        self._whatever = len(prefixes) == said > 1 and any(_may_be_name(one["label"]) for one in prefixes)
        below = Counter(one["label"] for line in others if (one := _PREFIX.match(line)) and _may_be(one["label"]))
        remarks |= {one for one in below if one.lower() in _REMARKS}
        names = [one for one in counts | below if is_name(_bare(_unbracketed(one))) and one not in remarks]
        shouted = [one for one in names if one.isupper()]
        if self._whatever:
            self._names = set(counts)
        elif said and len(likely) >= (_SHARE if said > _FEW else _SHARE_OF_FEW) * said:
            self._names = {one for one in counts if counts[one] > 1 or is_written_as_name(_bare(one))} - remarks
        else:
            alone = {one for one in names if _unbracketed(one) == one}
            again = {one for one in names if counts[one] + below[one] > 1}
            again |= {one for one in names if one not in alone and _unbracketed(one) in alone}
            bold = {one["label"] for line in first_lines if (one := _BOLD.match(line))}
            again |= {one for one in bold if len(bold) > 1 and is_written_as_name(one)}
            stems = {one["stem"] for name in again if (one := _COUNTED.fullmatch(name))}
            again |= {name for name in names if (one := _COUNTED.fullmatch(name)) and one["stem"] in stems}
            self._names = again | (set(shouted) if len(shouted) > 1 or again & set(shouted) else set())

        self._names |= _alone([one["label"] for one in prefixes if one.end() == len(one.string.rstrip())])
        self._bracketed = _bracketed(first_lines)
        if self._bracketed:
            dashed = (one for line in others if line[:1] in "-–—" and (one := _BRACKETED.match(line)))
            self._bracketed |= {name for one in dashed if is_written_as_name(name := _inside(one))}

    def line(self, line: str, *, first: bool = True) -> LabelledLine:
        """Return a line of an entry without its label; only names of the file are labels of those after the first."""
        written = _TURN.sub(" ", line).strip() if "[" in line else line.strip()
        line = unbold(written)
        if machine := _MACHINE.match(line):
            return LabelledLine(_machine_name(machine), line[machine.end() :].strip())
        if self._bracketed and (inside := _BRACKETED.match(line)) and _inside(inside) in self._bracketed:
            return LabelledLine(name_of(_inside(inside)), line[inside.end() :].strip())
        if prefix := _PREFIX.match(line):
            label, dashed = prefix["label"], bool(prefix["mark"].strip())
            is_one = label in self._names or (dashed and is_name(label)) or (first and self._whatever)
            if is_one and _may_be(label):
                return LabelledLine(_clean(label), line[prefix.end() :].strip())
        return LabelledLine(None, written)


def _unbracketed(label: str) -> str:
    """Return a label without what stands in brackets behind the name, such as a party, the first time alone."""
    return label.partition(" (")[0]


def _alone(labels: Sequence[str]) -> set[str]:
    """Return the names among labels that stand alone on their lines: those written so, and offices that come again."""
    named = [one for one in labels if is_written_as_name(one) or _names_party(one) or _names_office(one)]
    again = {one for one, count in Counter(labels).items() if count > 1 and _may_be_office(one)}
    found = again | set(named)
    return found if len(named) > 1 or (again and len(found) > 1) else set()


def _may_be_office(label: str) -> bool:
    """Return whether a label may be an office, or a name with one behind it, such as ``De voorzitter``."""
    small = [word for word in label.partition(",")[0].split() if word[0].islower() and word not in _PARTICLES]
    return label[0].isupper() and len(small) <= 1 and len(label.split()) <= _LONGEST_ALONE


def _bracketed(lines: Sequence[str]) -> set[str]:
    """Return the names that stand in brackets before most entries, or behind each dash, of which some come again."""
    found = Counter(_inside(one) for line in lines if (one := _BRACKETED.match(line)))
    if lines and lines[0].startswith(_DASHES) and len(dashed := _behind_dashes(lines)) >= _FEW:
        told = len(set(dashed)) < len(dashed) and all(a != b for a, b in pairwise(dashed))
        if told and not any(one.lower() in _SOUNDS or not is_written_as_name(one) for one in dashed):
            return set(dashed)
    names = {one for one in found if is_written_as_name(one) and one.lower() not in _SOUNDS}
    again = any(found[one] > 1 for one in names)
    return names if again and sum(found[one] for one in names) >= _SHARE * len(lines) else set()


def _behind_dashes(lines: Sequence[str]) -> list[str]:
    """Return what stands in brackets behind the dashes of lines; an empty text for a dash without."""
    found = [_BRACKETED.match(line) for line in lines if line.startswith(_DASHES)]
    return [_inside(one) if one else "" for one in found]


def _inside(found: re.Match[str]) -> str:
    """Return what stands in the brackets, of whichever kind."""
    return str(next(one for one in found.groups() if one))


def is_heard_beside(remark: str) -> bool:
    """Return whether a remark without its brackets is of what is heard beside speech, such as applause."""
    words = re.findall(r"[^\W\d_]+", remark.lower())[:_FIRST]
    return not _REACTIONS.isdisjoint(words)


def unbold(line: str) -> str:
    """Return a line without the asterisks of a bold label, such as ``**Ida:**`` in Markdown."""
    return _BOLD.sub(r"\g<label>: ", line, count=1) if line.lstrip().startswith("**") else line


def is_name(label: str) -> bool:
    """Return whether a label looks like a name, which a sentence with a colon in it does not; titles do not count."""
    return bool(_NAME.fullmatch(label)) and sum(not word.endswith(".") for word in label.split()) <= _MOST_WORDS


def is_written_as_name(label: str) -> bool:
    """Return whether a label is a name as meetings have it, such as with pronouns, or a telephone number."""
    name = _BESIDE.sub("", label)
    return (is_name(name) and _is_capitalized(name)) or bool(_TELEPHONE.fullmatch(label))


def _may_be_name(label: str) -> bool:
    """Return whether a label may be a name where all entries have one: a sentence is longer, and a remark is none."""
    return label.lower() not in _REMARKS and (len(label.split()) <= _MOST_WORDS or is_written_as_name(label))


def _is_likely(label: str) -> bool:
    """Return whether a label is likely to be a name wherever it stands: written as one, or a single word."""
    label = _bare(label)
    return label.lower() not in _REMARKS and (is_written_as_name(label) or (is_name(label) and " " not in label))


def _names_party(label: str) -> bool:
    found = _OF_PARTY.fullmatch(label)
    return found is not None and label[0].isupper() and found["last"][0].isupper()


def _names_office(label: str) -> bool:
    """Return whether a label is a full name and, behind a comma, an office."""
    name, comma, office = label.partition(", ")
    return bool(comma) and " " in name and is_written_as_name(name) and len(office.split()) <= _LONGEST_ALONE


def _is_capitalized(label: str) -> bool:
    """Return whether a label is written as names are; "One thing" is not."""
    words = [word for word in re.findall(r"[^\W\d_]+", label) if word.lower() not in _PARTICLES]
    return all(not word[0].islower() for word in words)


def _may_be(label: str) -> bool:
    """Return whether a label can be one: a time or an address is none, nor what leaves a bracket open."""
    return (
        label.count("(") <= label.count(")")
        and not label.isspace()
        and not re.fullmatch(r"[\d:.,\s]+|https?|\W+", label)
    )


def _clean(label: str) -> str:
    return name_of(_bare(label))


def _bare(label: str) -> str:
    """Return a label without the brackets around all of it."""
    inside = _BRACKETS.fullmatch(label)
    return next(one for one in inside.groups() if one) if inside else label


def _machine_name(found: re.Match[str]) -> str:
    """Return a name such as programs give: WhisperX' as it is, and whisper.cpp's as its JSON has it."""
    name = " ".join((next(one for one in found.groups() if one)).split())
    number = re.fullmatch(r"(?i:speaker)[ ](\w{1,3}|\?)", name)
    if name.lower() in {"unknown", "unknown speaker"}:
        return speaker_name(None)
    if number:
        return f"Speaker {number[1]}" if number[1] != "?" else speaker_name(None)
    return speaker_name(name)


def spoken(entries: Sequence[Sequence[str]]) -> Iterator[list[LabelledLine]]:
    """Yield for each entry, a list of lines, what is said in it by whom; lines without a label join the one before.

    Where labels say that the speaker changes, what follows without one is the same speaker's, also in the next entry.
    """
    changes = any(_CHANGE.match(line.strip()) for lines in entries for line in lines)
    entries = [[part for line in lines for part in _turns(line)] for lines in entries] if changes else entries
    texts = _with_names_before([[line.strip() for line in lines if line.strip()] for lines in entries])
    unmarked = [[_CHANGE.sub("", line) if changes else line for line in lines] for lines in texts]
    labels = Labels([lines[0] for lines in unmarked if lines], [line for lines in unmarked for line in lines[1:]])
    goes_on = changes or _stand_alone(texts, labels) or _names_at_changes(texts, labels)
    speaker: str | None = None
    for lines in texts:
        said: list[LabelledLine] = []
        for line in lines:
            begins = changes and bool(_CHANGE.match(line))
            one = replace(
                labels.line(_CHANGE.sub("", line) if begins else line, first=not said or begins), begins=begins
            )
            if goes_on and not said and one.speaker is None and not begins:
                one = replace(one, speaker=speaker)
            if said and not begins and one.speaker in (None, said[-1].speaker):
                said[-1] = replace(said[-1], text=f"{said[-1].text} {one.text}".strip())
            elif one.text or one.speaker is not None:
                said.append(one)
            speaker = said[-1].speaker if said else speaker
        yield [one for one in said if one.text]


def labelled(said: Sequence[Utterance]) -> list[Utterance]:
    """Return the utterances with the speakers whom labels in their texts name, where nothing else tells."""
    if any(one.speaker != UNKNOWN_SPEAKER for one in said):
        return [*said]
    found: list[Utterance] = []
    for one, lines in zip(said, spoken([[one.text] for one in said]), strict=True):
        found += [Utterance(line.speaker or UNKNOWN_SPEAKER, line.text, one.at, until=one.until) for line in lines]
    return found


def _with_names_before(entries: list[list[str]]) -> list[list[str]]:
    """Return entries with the names in brackets that stand alone on most first lines before what is said below."""
    joined = [
        [f"{lines[0]} {lines[1]}", *lines[2:]] if len(lines) > 1 and _ALONE_IN_BRACKETS.fullmatch(lines[0]) else lines
        for lines in entries
    ]
    return joined if joined != entries and _bracketed([lines[0] for lines in joined if lines]) else entries


def _turns(line: str) -> Iterator[str]:
    """Yield the parts of a line in which one speaker speaks."""
    places = [found.start() for found in _CHANGE.finditer(line)]
    starts = [0, *(place for place in places if place > 0)]
    yield from (line[start:end] for start, end in zip(starts, [*starts[1:], len(line)], strict=True))


def _stand_alone(entries: Sequence[Sequence[str]], labels: Labels) -> bool:
    """Return whether labels of programs stand on lines of their own: they are written where the speaker changes."""
    first = [lines for lines in entries if lines and _MACHINE.match(lines[0])]
    return bool(first) and all(len(lines) > 1 and not labels.line(lines[0]).text for lines in first)


def _names_at_changes(entries: Sequence[Sequence[str]], labels: Labels) -> bool:
    """Return whether a file has names where the speaker changes, and there alone.

    It begins with a name, some name comes again, and no name follows on itself. Files that name most of those whom
    nobody sees do not; nor do those that mark another speaker with a dash.
    """
    told = [
        (lines, [labels.line(line, first=place == 0).speaker for place, line in enumerate(lines)]) for lines in entries
    ]
    told = [(lines, names) for lines, names in told if lines]
    named = [name for _, names in told for name in names if name is not None]
    if len(named) < _FEW or not told[0][1][0] or len(set(named)) == len(named):
        return False
    has_dashes = any(
        line[0] in "-–—" for lines, names in told for line, name in zip(lines, names, strict=True) if not name
    )
    begin = sum(names[0] is not None for _, names in told)
    return (
        not has_dashes and begin < len(told) and begin >= _RARE * len(told) and all(a != b for a, b in pairwise(named))
    )
