"""Two understandings of the same messages, to look at: how far they agree, then where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from context_builder.cli.view.palette import plain, short_name
from context_builder.recording.comparison import Comparison, DomainPair, KeywordPair, PointPair
from context_builder.recording.understanding import RecordedMessage, RecordedPoint, Understanding

MOST_SHOWN: Final = 20
"""Differences shown of each task; the least alike first, and all of them as JSON."""

_Row = tuple[Text, Text, Text]


@dataclass(frozen=True, slots=True)
class Side:
    """Names one side, and the analysts of its results."""

    name: str
    made_by: str

    @classmethod
    def of(cls, name: str, understanding: Understanding) -> Side:
        made_by = ", ".join(f"{plain(label, 40)} {count:,}" for label, count in understanding.analysts.most_common())
        failed = f"; {understanding.failed:,} failed" if understanding.failed else ""
        return cls(plain(name, 80), f"{made_by or 'nothing'}{failed}")


def show(comparison: Comparison, left: Side, right: Side, console: Console) -> None:
    """Print agreement by task, and the differing items side by side."""
    for label, side in (("left", left), ("right", right)):
        console.print(Text.assemble((f"{label:<6}", "bold"), side.name, (f"  readings: {side.made_by}", "dim")))
    for line in _agreement(comparison.figures()):
        console.print(line)
    keywords = sorted((pair for pair in comparison.keywords if pair.alike < 1), key=lambda pair: pair.alike)
    domains = sorted((pair for pair in comparison.domains if pair.left != pair.right), key=lambda pair: pair.alike)
    points = [pair for pair in comparison.points if not pair.same_text]
    _section(console, "keywords", "message", [_keywords(pair) for pair in keywords])
    _section(console, "domains", "after", [_domains(pair) for pair in domains])
    _section(console, "points", "cited", [_points(pair) for pair in points])


def _agreement(figures: dict[str, dict[str, Any]]) -> Iterable[Text]:
    keywords, domains, points = figures["keywords"], figures["domains"], figures["points"]
    aside = f", {keywords['one_side_only']:,} on one side only" if keywords["one_side_only"] else ""
    yield _line("keywords", f"{_share(keywords['jaccard'])} in common, over {keywords['messages']:,} messages{aside}")
    leading, all_of_them = _share(domains["same_leading"]), _share(domains["jaccard"])
    yield _line("domains", f"{leading} same leading one, {all_of_them} in common, over {domains['inferences']:,} times")
    matched = f"{points['matched']:,} about the same messages ({points['same_text']:,} in the same words)"
    yield _line("points", f"{matched}, {points['only_left']:,} only left, {points['only_right']:,} only right")


def _line(task: str, agreement: str) -> Text:
    return Text.assemble((f"{task:<10}", "bold"), agreement)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _section(console: Console, title: str, what: str, rows: Sequence[_Row]) -> None:
    if not rows:
        return
    console.print(Rule(Text(f"{title} that differ", style="bold"), style="bright_black", align="left"))
    table = Table(what, "left", "right", expand=True, box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in rows[:MOST_SHOWN]:
        table.add_row(*row)
    console.print(table)
    if len(rows) > MOST_SHOWN:
        console.print(Text(f"and {len(rows) - MOST_SHOWN:,} more; --json has all", style="dim"))


def _keywords(pair: KeywordPair) -> _Row:
    return _said(pair.message), _words(pair.left, pair.right), _words(pair.right, pair.left)


def _domains(pair: DomainPair) -> _Row:
    left, right = [short_name(name) for name in pair.left], [short_name(name) for name in pair.right]
    return _said(pair.message), _words(left, right), _words(right, left)


def _points(pair: PointPair) -> _Row:
    cites = sorted({m for point in (pair.left, pair.right) if point for m in point.cites}, key=lambda m: m.text)
    cited = Text("\n").join(_said(message, 60) for message in cites)
    return cited, _point(pair.left), _point(pair.right)


def _point(point: RecordedPoint | None) -> Text:
    if point is None:
        return Text("–", style="dim")
    return Text.assemble((f"{point.kind.value}  ", "dim"), plain(point.text, 400))


def _said(message: RecordedMessage, limit: int = 120) -> Text:
    return Text.assemble((f"{plain(message.speaker, 20)}: ", "dim"), plain(message.text, limit))


def _words(mine: Sequence[str], others: Sequence[str]) -> Text:
    """Return the words of one side, with those that the other lacks standing out."""
    if not mine:
        return Text("–", style="dim")
    known = {word.casefold() for word in others}
    return Text(" · ").join(Text(plain(w, 60), style="" if w.casefold() in known else "bold yellow") for w in mine)
