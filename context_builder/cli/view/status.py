"""The status shows who runs the session, who speaks, and how much waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text

if TYPE_CHECKING:
    from context_builder.cli.view.published import Published
    from context_builder.session.client import Ended

_CELLS: Final = 8
"""Width of the silence clock's gauge."""

_LONG_SILENCE: Final = 60.0
"""Seconds of silence from which it looks as if people had left."""

_BEHIND: Final = 20
"""Messages in the queue from which the session is behind."""

FAILING: Final = {
    "summary": "summary fails",
    "keywords": "keywords fail",
    "domains": "domains fail",
    "compaction": "summary too long",
}
"""What people are told of each task whose model calls fail, the most serious first."""

_BETWEEN: Final = "  │  "


def running(page: Published, now: float) -> Text:
    """Return who runs the session, or that it has ended; in colour when nobody runs it or it does not answer."""
    if page.owned and (page.ticking or not page.known):
        return Text.assemble(("● ", "green"), page.owner)
    if page.owned:
        return Text.assemble(("● ", "yellow"), (f"{page.owner} does not answer", "yellow"))
    if page.ended:
        return Text.assemble(
            ("■ ", "cyan"), (f"ended {clock_time(page.ended.at, now)}, {archived(page.ended)}", "cyan")
        )
    ago = page.published_ago(now)
    stale = f"; state is {duration(ago)} old" if page.known and ago is not None else ""
    return Text.assemble(("○ ", "bold red"), (f"no daemon runs it{stale}", "red"))


def archived(ended: Ended) -> str:
    """Return what became of the summaries of a session that has ended."""
    stored = ended.summaries - ended.undelivered
    text = f"{counted(stored, 'summary')} archived"
    return f"{text}, {ended.undelivered:,} to be" if ended.undelivered else text


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 summary``, ``2 summaries`` and ``2 keys``."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"


def clock_time(moment: float, now: float) -> str:
    """Return epoch second ``moment`` in local time, with the day unless that is today's: ``10:32``."""
    at = datetime.fromtimestamp(moment)
    return f"{at:%H:%M}" if at.date() == datetime.fromtimestamp(now).date() else f"{at:%Y-%m-%d %H:%M}"


SILENCE: Final = 4.0
"""Seconds after which a session counts as silent where SILENCE_THRESHOLD is not set."""


def silence_clock(page: Published, now: float, threshold: float) -> Text:
    """Return how long nobody has spoken, with a gauge that is full at ``threshold`` seconds."""
    seconds = page.silent_for(now)
    if seconds is None:
        return Text("nobody has spoken", style="dim")
    if not page.ticking:
        return Text(f"last heard {duration(seconds)} ago", style="dim")
    cells = _CELLS if page.silence else min(_CELLS - 1, int(seconds / threshold * _CELLS))
    gauge = "▰" * cells + "▱" * (_CELLS - cells)
    if not page.silence:
        return Text.assemble((gauge, "green"), ("  speaking", "bold green"), (f"  {seconds:3.1f} s ago", "dim"))
    colour = "yellow" if seconds < _LONG_SILENCE else "red"
    return Text.assemble((gauge, colour), (f"  silent for {duration(seconds)}", f"bold {colour}"))


def figures(page: Published, now: float, per_minute: float | None) -> list[Text]:
    """Return rates and lags, the most important first."""
    ago, pending, dead = page.published_ago(now), page.count("pending_messages"), page.dead_letters
    shown = [Text(f"{what}: {reason}" if reason else what, "red") for what, reason in page.failing(FAILING).items()]
    shown += [
        _figure("messages", f"{page.received:,}"),
        _figure("per minute", "–" if per_minute is None else f"{per_minute:.0f}"),
        _figure("queued", f"{page.waiting:,}", "yellow" if page.waiting > _BEHIND else ""),
        _figure("pending", f"{pending:,}", "cyan" if pending else ""),
        _figure("summaries", f"{page.summaries:,}"),
        _figure("dead letters", f"{dead:,}", "red" if dead else ""),
        _figure("published", "–" if ago is None else f"{duration(ago)} ago"),
    ]
    spent, tokens = page.spent()
    if tokens:
        shown.append(_figure("cost", f"{dollars(spent)}, {tokens:,} tokens"))
    if analysts := page.analysts():
        shown.append(_figure("analyst", _labels(analysts)))
    return shown


def flow(figures: Sequence[Text], width: int, rows: int) -> list[Text]:
    """Return the figures side by side in at most ``rows`` lines of ``width`` columns; the rest is left out."""
    lines = [Text(no_wrap=True, overflow="ellipsis")]
    for figure in figures:
        if lines[-1] and lines[-1].cell_len + len(_BETWEEN) + figure.cell_len > width:
            if len(lines) == rows:
                break
            lines.append(Text(no_wrap=True, overflow="ellipsis"))
        if lines[-1]:
            lines[-1].append(_BETWEEN, "bright_black dim")
        lines[-1].append_text(figure)
    return lines


def duration(seconds: float) -> str:
    """Return seconds as people write them: ``0.4 s``, ``12 s``, ``3:05``, ``1:02:03``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} days"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def dollars(amount: float) -> str:
    """Return US dollars with as many digits as are significant: ``$12.50``, ``$0.0042``."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def _figure(label: str, value: str, colour: str = "") -> Text:
    return Text.assemble((f"{label} ", "dim"), (value, f"bold {colour}".strip()))


def _labels(analysts: dict[str, str]) -> str:
    """Return what made keywords, domains and summary: one label where all three are the same."""
    if len(set(analysts.values())) == 1:
        return next(iter(analysts.values()))
    return ", ".join(f"{what} {label}" for what, label in analysts.items())
