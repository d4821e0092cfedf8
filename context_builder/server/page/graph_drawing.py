"""A package's neighbourhood in the graph is drawn without a script, always in the same layout. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 36
"""Nodes that are drawn, those nearest to what was asked for; all are in the list beside the drawing."""

_COLUMN: Final = 300
_ROW: Final = 34
_MARGIN: Final = 24
_LABEL: Final = 30
"""Characters of a label."""

_SWEEPS: Final = 4

_COLUMNS: Final = (("Documents", ("artifact",)), ("Points", ("point",)), ("Messages", ("message",)), ("Others", ()))


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node and the middle of its sign. ``is_in`` tells whether the package holds it."""

    ref: str
    label: str
    title: str
    proximity: float
    is_in: bool
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge as the path of a line."""

    source: str
    target: str
    type: str
    path: str


@dataclass(frozen=True, slots=True)
class Heading:
    """Names a column."""

    text: str
    x: int


@dataclass(frozen=True, slots=True)
class GraphDrawing:
    """What is drawn; ``listed`` and ``links`` are all nodes and edges, ``left_out`` counts nodes not drawn."""

    width: int
    height: int
    headings: tuple[Heading, ...]
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    listed: tuple[DrawnNode, ...]
    links: tuple[DrawnEdge, ...]

    @property
    def left_out(self) -> int:
        return len(self.listed) - len(self.nodes)


def drawn(graph: Mapping[str, Any], titles: Mapping[str, str], held: frozenset[str]) -> GraphDrawing:
    """Return the drawing of a recorded graph. ``titles`` are known titles by ref, ``held`` what is in the package."""
    near = {str(one["ref"]): float(one["proximity"]) for one in graph.get("nodes", ())}
    edges = [(str(one["from"]), str(one["to"]), str(one["type"])) for one in graph.get("edges", ())]
    ordered = sorted(near, key=lambda ref: (ref not in held, -near[ref], ref))
    chosen = ordered[:MOST]
    columns = [[ref for ref in chosen if _column(ref) == place] for place in range(len(_COLUMNS))]
    present = [place for place, refs in enumerate(columns) if refs]
    _untangle([columns[place] for place in present], edges)
    places = {
        ref: (_MARGIN + 10 + at * _COLUMN, _MARGIN + 30 + row * _ROW)
        for at, place in enumerate(present)
        for row, ref in enumerate(columns[place])
    }

    def node(ref: str) -> DrawnNode:
        x, y = places.get(ref, (0, 0))
        title = titles.get(ref, "")
        return DrawnNode(ref, _short(title or ref), title, near[ref], ref in held, x, y)

    links = [DrawnEdge(one, other, kind, _path(places, one, other)) for one, other, kind in edges]
    rows = max((len(columns[place]) for place in present), default=0)
    return GraphDrawing(
        width=2 * _MARGIN + _COLUMN * max(1, len(present)),
        height=2 * _MARGIN + 30 + _ROW * max(1, rows),
        headings=tuple(Heading(_COLUMNS[place][0], _MARGIN + at * _COLUMN) for at, place in enumerate(present)),
        nodes=tuple(map(node, chosen)),
        edges=tuple(one for one in links if one.path),
        listed=tuple(map(node, ordered)),
        links=tuple(links),
    )


def _column(ref: str) -> int:
    kind = ref.partition(":")[0]
    return next((place for place, (_, kinds) in enumerate(_COLUMNS) if kind in kinds), len(_COLUMNS) - 1)


def _untangle(columns: Sequence[list[str]], edges: Sequence[tuple[str, str, str]]) -> None:
    """Sort each column by the mean place of what its nodes are linked with (Sugiyama, Tagawa and Toda 1981)."""
    linked: dict[str, list[str]] = {}
    for one, other, _ in edges:
        linked.setdefault(one, []).append(other)
        linked.setdefault(other, []).append(one)
    for _ in range(_SWEEPS):
        for column in columns:
            at = {ref: row / max(1, len(other)) for other in columns for row, ref in enumerate(other)}
            wanted = {ref: _mean([at[one] for one in linked.get(ref, ()) if one in at], at[ref]) for ref in column}
            column[:] = [ref for _, ref in sorted((wanted[ref], ref) for ref in column)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _path(places: Mapping[str, tuple[int, int]], one: str, other: str) -> str:
    """Return the line between two nodes: an arc to the left within a column, else from side to side."""
    if one not in places or other not in places or one == other:
        return ""
    (x, y), (to_x, to_y) = places[one], places[other]
    if x == to_x:
        bend = min(26, 8 + abs(to_y - y) // 4)
        return f"M{x - 8} {y}C{x - bend} {y} {x - bend} {to_y} {to_x - 8} {to_y}"
    if x > to_x:
        (x, y), (to_x, to_y) = (to_x, to_y), (x, y)
    begin = x + _COLUMN - 60
    return f"M{begin} {y}C{begin + 40} {y} {to_x - 44} {to_y} {to_x - 9} {to_y}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[: _LABEL - 1]}…"
