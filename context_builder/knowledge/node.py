"""A node is an artifact, a point of a summary or a message that a package may contain.

Its projections are shorter texts that may stand for it: the beginnings of its paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Self
from urllib.parse import quote

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.govern import Redacted, RedactionPolicy
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.excerpt import Part
from context_builder.knowledge.governance import GovernedSource

SIZES: Final = (1_600, 640, 256, 100, 40, 16)
"""Most words of the projections of a text."""

LARGEST_SHARE: Final = 0.8
"""A projection has at most so much of the words of its text; a longer one would save too little."""

_PARAGRAPH: Final = re.compile(r"\n\s*\n")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_GAP: Final = " […] "


def projections(text: str) -> dict[int, str]:
    """Return shorter texts that may stand for ``text``, by their most words, the longest first; none for a short one.

    They are made of its sentences in their order, first of those that begin paragraphs; a mark tells what is left out.
    """
    words = len(text.split())
    sizes = [size for size in SIZES if size <= words * LARGEST_SHARE]
    if not sizes:
        return {}
    paragraphs = list(filter(None, map(_sentences, _PARAGRAPH.split(text))))
    lengths = [[len(sentence.split()) for sentence in sentences] for sentences in paragraphs]
    made: dict[int, str] = {}
    for size in sizes:
        shorter = _extract(paragraphs, lengths, size)
        if shorter and shorter not in made.values():
            made[size] = shorter
    return made


def _extract(paragraphs: Sequence[Sequence[str]], lengths: Sequence[Sequence[int]], room: int) -> str:
    """Return sentences with at most ``room`` words; the beginning of the first, where that has more."""
    if not paragraphs:
        return ""
    chosen: set[tuple[int, int]] = set()
    for number, place in _by_place(lengths):
        if not room:
            break
        if (words := lengths[number][place]) <= room:
            room -= words
            chosen.add((number, place))
    if not chosen:
        return " ".join(paragraphs[0][0].split()[:room]) + _GAP.rstrip()
    return _joined(paragraphs, chosen)


def _by_place(lengths: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Yield paragraph and place of the first sentences of all paragraphs, then of the second ones, and so on."""
    rest: Sequence[int] = range(len(lengths))
    place = 0
    while rest:
        yield from ((number, place) for number in rest)
        place += 1
        rest = [number for number in rest if len(lengths[number]) > place]


def _sentences(paragraph: str) -> list[str]:
    """Return the sentences that say anything: lines of signs alone, such as a fence of code, do not."""
    return [sentence for sentence in _SENTENCE_END.split(paragraph.strip()) if any(map(str.isalnum, sentence))]


def _joined(paragraphs: Sequence[Sequence[str]], chosen: set[tuple[int, int]]) -> str:
    places: dict[int, list[int]] = {}
    for number, place in sorted(chosen):
        places.setdefault(number, []).append(place)
    lines: list[str] = []
    before = next(iter(places)) - 1
    for number, kept in places.items():
        if number > before + 1:
            _mark(lines)
        gap = _GAP.rstrip() if len(kept) < len(paragraphs[number]) else ""
        lines.append(" ".join(paragraphs[number][place] for place in kept) + gap)
        before = number
    if before + 1 < len(paragraphs):
        _mark(lines)
    return "\n".join(lines)


def _mark(lines: list[str]) -> None:
    if not lines[-1].endswith(_GAP.strip()):
        lines.append(_GAP.strip())


_LONGEST_TITLE: Final = 80
"""Characters of the title of what was said, as in ``context_knowledge_said``."""


def heading_of(title: str, kind: str, status: str, superseded_by: str | None) -> str:
    """Return a title, and what a reader has to know about its source; an empty ref is of what may not be named."""
    about = [kind, status if status in ("draft", "stale", "superseded") else ""]
    if superseded_by is not None:
        about.append(f"superseded by {superseded_by}" if superseded_by else "superseded")
    return f"{title} ({', '.join(filter(None, about))})"


@dataclass(frozen=True, slots=True)
class KnowledgeNode:
    """A node as it is at present.

    ``version`` is an artifact's, 0 of other nodes. ``content`` is None where it is too long for the package that asked;
    ``projections`` are shorter texts for it, the longest first. ``superseded_by`` is empty where what replaces it may
    not be named. ``quality`` and ``reuse`` are 0..1; None: unknown.
    """

    ref: str
    kind: str
    title: str
    content: str | None
    version: int = 0
    sensitivity: str = "internal"
    status: str = ""
    project: str = ""
    module: str = ""
    session: str = ""
    tags: tuple[str, ...] = ()
    speaker: str | None = None
    time: datetime | None = None
    superseded_by: str | None = None
    cites: tuple[str, ...] = ()
    projections: tuple[str, ...] = ()
    quality: float | None = None
    reuse: float | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the node in a row of an SQL function."""
        time = row.get("time")
        return cls(
            **{
                **row,
                "time": datetime.fromisoformat(time) if time else None,
                **{name: tuple(row[name]) for name in ("tags", "cites", "projections") if name in row},
            }
        )

    @property
    def link(self) -> str:
        """Return the path of the whole of it on the HTTP server."""
        if self.version:
            return f"/knowledge/artifacts/{quote(self.ref, safe=':@')}?version={self.version}"
        return f"/sessions/{quote(self.session, safe='')}/messages?around={quote(self.ref, safe=':@')}"

    @property
    def heading(self) -> str:
        """Return its title, and what a reader has to know about it."""
        return heading_of(self.title, self.kind, self.status, self.superseded_by)

    def unnamed(self) -> KnowledgeNode:
        """Return it without the ref of what replaces it."""
        return replace(self, superseded_by="")

    def redacted(self, policy: RedactionPolicy) -> Redacted[KnowledgeNode]:
        """Return it, which has to have its content, as it may be shown: redacted whole, then shortened."""
        named = policy.mapping(
            {"tags": self.tags, "speaker": self.speaker, "project": self.project, "module": self.module}
        )
        whole = policy.mapping({"content": self.content} | ({"title": self.title} if self.version else {}))
        content = str(whole.value["content"])
        shown = replace(
            self,
            **{**named.value, "tags": tuple(named.value["tags"])},
            title=whole.value["title"] if self.version else _beginning(content),
            content=content,
            projections=tuple(projections(content).values()),
        )
        altered = ", ".join(dict.fromkeys(filter(None, (whole.altered, named.altered))))
        return Redacted(shown, altered, whole.withheld or named.withheld)

    def governed(self, tenant_id: str) -> GovernedSource:
        """Return what policies may know of it."""
        return GovernedSource(
            self.ref,
            tenant_id,
            self.kind,
            self.sensitivity,
            self.status,
            self.project,
            self.module,
            self.session,
            frozenset(self.tags),
        )

    def candidate(
        self, origin: str, *, similarity: float = 0.0, proximity: float | None = None, passages: Sequence[Part] = ()
    ) -> Candidate:
        """Return it as a candidate of a prompt that the source ``origin`` offers, which found some of its passages."""
        text = self.content
        if text is None:
            text = self.projections[0] if self.projections else ""
        return Candidate(
            self.ref,
            text,
            base_score=similarity,
            score=similarity,
            label=self.heading,
            speaker=self.speaker,
            time=self.time,
            origins=(origin,),
            metadata={"title": self.title, "node": self, "passages": passages},
            evidence={} if proximity is None else {"graph": proximity},
            projections=self.projections,
        )


def _beginning(text: str) -> str:
    """Return the title of what was said: its beginning on one line, of whole words."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else line[:_LONGEST_TITLE].rpartition(" ")[0] or line[:_LONGEST_TITLE]


def is_found_redacted(node: KnowledgeNode) -> bool:
    """Return whether a node is searched by what is shown of it redacted: confidential artifacts are."""
    return bool(node.version) and node.sensitivity == Sensitivity.CONFIDENTIAL


def node_of(candidate: Candidate) -> KnowledgeNode:
    """Return the node that a candidate was made of."""
    node: KnowledgeNode = candidate.metadata["node"]
    return node
