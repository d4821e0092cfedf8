"""TTML (https://www.w3.org/TR/ttml2/), also as DFXP and IMSC, with who speaks by its agents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser  # of text in which nothing is declared

from context_builder.transcript.labels import spoken
from context_builder.transcript.offsets import offset
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_ID: Final = "{http://www.w3.org/XML/1998/namespace}id"
_METRIC: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s|f|t)")
_CLOCK_FRAMES: Final = re.compile(r"(\d{2,6}):(\d\d):(\d\d):(\d{2,6})(?:\.\d{1,6})?")
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")
_DOCUMENT_TYPE: Final = re.compile(r"<!DOCTYPE[^<>\[\]]*>")
"""Names a document type that is elsewhere, which is not fetched; one that declares something is not taken out."""

_DEEPEST: Final = 100
_STEP: Final = 2**16

LARGEST: Final = 32 * 2**20
"""Characters of an XML text that is read: some hundred hours of talk."""

MOST_ELEMENTS: Final = 2_000_000
"""Elements of an XML text, which take some 100 bytes of memory each."""

DEEPEST: Final = 128
"""Elements within each other: what goes through each and all that is in it takes this many times as long at most."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of an element: from when on it is shown, until when, and who speaks."""

    begin: float
    end: float | None
    speaker: str | None


def is_xml(text: str) -> bool:
    """Return whether a text is XML, by how it begins; pages and SAMI begin otherwise."""
    return bool(
        re.match(r"\s*(<\?xml|<tt[\s>:]|<[a-z]+:tt\s|<(?:transcript|timedtext|Trans|chat|smses|Log)\b)", text[:400])
    )


def parse_xml(text: str, source: Source | None = None) -> Element:
    """Return the root of an XML text, in which no entity is declared. Raises :class:`ValueError`, also for one that
    is too large or nested too deeply. Of one that is cut off, which is noted in a ``source``, it has what is complete.
    """
    lines = text.count("\n") + 1
    if len(text) > LARGEST:
        raise ValueError(f"XML of more than {LARGEST / 2**20:g} MiB is not read")
    text = _DOCUMENT_TYPE.sub("", text, count=1)
    if re.search(r"<!(?:DOCTYPE|ENTITY)", text):
        raise ValueError("XML that declares entities is not read")
    text = _DECLARATION.sub("", text)
    builder = _BoundedBuilder()
    parser = XMLParser(target=builder)  # noqa: S314 (entities, which are what is dangerous, are refused above)
    try:
        for begin in range(0, len(text), _STEP):  # or all of it is gone through, whatever is wrong in the beginning
            parser.feed(text[begin : begin + _STEP])
    except ParseError as error:
        raise ValueError(f"not XML: {error}") from None
    try:
        root: Element = parser.close()
    except ParseError as error:
        if source is None or builder.root is None or not builder.has_ended:
            raise ValueError(f"not XML: {error}") from None
        source.problem("cut off; read as far as it goes", lines)
        return builder.root
    return root


class _BoundedBuilder(TreeBuilder):
    """Builds a tree of no more elements than may be. Raises :class:`ValueError`."""

    def __init__(self) -> None:
        super().__init__()
        self.root: Element | None = None
        self.has_ended = False  # any element
        self._depth = 0
        self._elements = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        self._elements += 1
        if self._depth > DEEPEST:
            raise ValueError("XML is nested too deeply")
        if self._elements > MOST_ELEMENTS:
            raise ValueError(f"XML of more than {MOST_ELEMENTS:,} elements is not read")
        begun = super().start(tag, attrs)
        self.root = begun if self.root is None else self.root
        return begun

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        self.has_ended = True
        return super().end(tag)


def read_captions(root: Element, source: Source) -> Transcript:
    """Return the transcript in XML of captions."""
    agents = dict(_agents(root))
    rates = _Rates({key.rpartition("}")[2]: value for key, value in root.attrib.items()})
    body = next((one for one in root.iter() if local(one) == "body"), root)
    found = [*_paragraphs(body, _Place(0.0, None, None), agents, rates, source, 0)]
    said: list[Utterance] = []
    texts = [[] if place.speaker else lines for place, lines in found]
    for (place, lines), labelled in zip(found, spoken(texts), strict=True):
        if place.speaker:
            said.append(Utterance(place.speaker, " ".join(lines), place.begin, until=place.end))
        said += [Utterance(one.speaker or UNKNOWN_SPEAKER, one.text, place.begin, until=place.end) for one in labelled]
    return Transcript(once(sorted((one for one in said if one.text), key=lambda one: one.at or 0.0)))


class _Rates:
    """The lengths of a document's frames and ticks."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.frame = _positive(parameters.get("frameRate"), 30.0)
        multiplier = [_positive(one, 1.0) for one in parameters.get("frameRateMultiplier", "").split()]
        if len(multiplier) == 2:
            self.frame *= multiplier[0] / multiplier[1]
        self.tick = _positive(parameters.get("tickRate"), self.frame if "frameRate" in parameters else 1.0)

    def seconds(self, time: str) -> float:
        """Return the seconds of a time expression. Raises :class:`ValueError`."""
        time = time.strip()
        if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", time):
            return float(time)
        if metric := _METRIC.fullmatch(time):
            units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "f": 1 / self.frame, "t": 1 / self.tick}
            return float(metric[1]) * units[metric[2]]
        if frames := _CLOCK_FRAMES.fullmatch(time):
            hours, minutes, seconds, count = (int(one) for one in frames.groups())
            return hours * 3600 + minutes * 60 + seconds + count / self.frame
        return offset(time)


def _positive(value: str | None, default: float) -> float:
    return float(value) if value and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", value) and float(value) > 0 else default


def _agents(root: Element) -> Iterator[tuple[str, str]]:
    for agent in root.iter():
        if local(agent) == "agent" and (key := agent.get(_ID)):
            names = [name for one in agent if local(one) == "name" and (name := "".join(one.itertext()).strip())]
            yield key, name_of(names[0] if names else key)


def _paragraphs(
    element: Element, place: _Place, agents: Mapping[str, str], rates: _Rates, source: Source, depth: int
) -> Iterator[tuple[_Place, list[str]]]:
    """Yield the lines of each paragraph with where it stands; times count from those of what it stands in."""
    if depth > _DEEPEST:
        source.problem("XML is nested too deeply")
        return
    try:
        here = _place(element, place, agents, rates)
    except ValueError as error:
        source.problem(error)
        here = place
    if local(element) != "p":
        for inside in element:
            yield from _paragraphs(inside, here, agents, rates, source, depth + 1)
        return
    timed = [one for one in element if local(one) == "span" and one.get("begin")]
    if timed and not (element.text or "").strip() and not element.get("begin"):
        for span in timed:
            try:
                yield _place(span, here, agents, rates), _lines(span)
            except ValueError as error:
                source.problem(error)
        return
    speakers = [agents.get(name, name_of(name)) for one in element if (name := _agent(one))]
    if here.speaker is None and speakers:
        for span in element:
            name = _agent(span)
            yield _Place(here.begin, here.end, agents.get(name, name_of(name)) if name else None), _lines(span)
        return
    yield here, _lines(element)


def _place(element: Element, outer: _Place, agents: Mapping[str, str], rates: _Rates) -> _Place:
    begin, end, long = (element.get(key) for key in ("begin", "end", "dur"))
    since = outer.begin
    is_within = begin is None or rates.seconds(begin) >= since
    if end and is_within and outer.end is not None and since + rates.seconds(end) > outer.end >= rates.seconds(end):
        since = 0.0  # of programs whose times all count from the beginning: none goes on behind what it stands in
    start = since + rates.seconds(begin) if begin else outer.begin
    until = since + rates.seconds(end) if end else start + rates.seconds(long) if long else outer.end
    name = _agent(element)
    return _Place(start, until, agents.get(name, name_of(name)) if name else outer.speaker)


def _agent(element: Element) -> str:
    """Return the id of the first agent that an element names, whatever the prefix of its namespace is."""
    found = next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == "agent"), "")
    return found.split()[0] if found.split() else ""


def _lines(element: Element) -> list[str]:
    return [" ".join(line.split()) for line in _text(element, 0).split("\0")]


def _text(element: Element, depth: int) -> str:
    """Return an element's text with a mark where a line breaks."""
    if local(element) == "br":
        return "\0"
    if local(element) == "metadata" or depth > _DEEPEST:
        return ""
    own = element.text or ""
    if any(key.rpartition("}")[2] == "unit" and value == "word" for key, value in element.attrib.items()):
        own = f" {own} "  # Apple's have none between words
    return own + "".join(_text(inside, depth + 1) + (inside.tail or "") for inside in element)


def local(element: Element) -> str:
    """Return an element's name without its namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
