"""What the campaign did and what came of it, and how that is told."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from scripts.benches.harness.report import p50_p95
from scripts.campaign.audit import Findings
from scripts.campaign.listener import Sent

_FIGURES: Final = (
    *("seed", "sessions", "kills", "audits", "acknowledged", "retried", "repeated", "dead_letters", "summaries"),
    *("degraded", "seconds", "refused", "forgotten", "fell_back", "given_up"),
)
"""What the result as JSON has of the tally as it is."""


@dataclass
class Tally:
    """Counts, samples in seconds, and everything found wrong."""

    seed: str
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    interrupted: bool = False
    faults: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    sessions: int = 0
    audits: int = 0
    acknowledged: int = 0
    retried: int = 0
    repeated: int = 0
    dead_letters: int = 0
    summaries: int = 0
    refused: int = 0
    degraded: int = 0
    forgotten: int = 0
    fell_back: int = 0
    given_up: int = 0
    lost: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    returned: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    after_kill: list[float] = field(default_factory=list)
    after_redis: list[float] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)

    def find(self, session_id: str, findings: Findings, context: str) -> None:
        """Note what an audit found, and after what."""
        self.audits += 1
        for kind in ("lost", "doubled", "returned"):
            found = sorted(getattr(findings, kind))
            getattr(self, kind).update(f"{session_id} {what}" for what in found)
            if found:
                _tell(f"{session_id} after {context}: {kind} {found[:20]}")
        for words in findings.disagreements:
            self.note(f"{session_id} after {context}: {words}")

    def note(self, wrong: str) -> None:
        """Something else is wrong; it is told at once."""
        self.wrong.append(wrong)
        _tell(wrong)

    def close_session(self, sent: Sent, dead_letters: int, summaries: int, degraded: int) -> None:
        self.sessions += 1
        self._count(sent)
        self.dead_letters += dead_letters
        self.summaries += summaries
        self.degraded += degraded

    def forget_session(self, sent: Sent) -> None:
        self.forgotten += 1
        self._count(sent)

    def _count(self, sent: Sent) -> None:
        self.acknowledged += len(sent.acknowledged)
        self.retried += sent.retried
        self.repeated += sent.repeated
        self.given_up += len(sent.given_up)

    @property
    def has_findings(self) -> bool:
        return bool(self.lost or self.doubled or self.returned or self.wrong)

    @property
    def unproven(self) -> str:
        """Why this proves nothing although nothing was found wrong; empty when it does."""
        if self.interrupted:
            return "interrupted: of the sessions that were not accounted for nothing is known"
        if not (self.sessions and self.faults):
            return "nothing is proven: no session was accounted for after a fault"
        return ""

    @property
    def status(self) -> int:
        """The campaign's exit status: 0 for a proof, 1 for a failure or nothing proven, 130 after Ctrl-C."""
        if self.has_findings:
            return 1
        if self.interrupted:
            return 130
        return 1 if self.unproven else 0

    def line(self) -> str:
        """Progress."""
        return (
            f"{time.monotonic() - self.started:6.0f} s  {self.kills:5} kills  {self.faults.total():5} faults"
            f"  {self.sessions:3} sessions  {self.acknowledged:7} messages"
            f"  {len(self.lost)} lost  {len(self.doubled)} doubled  {len(self.returned)} back  {len(self.wrong)} wrong"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _FIGURES},
            "passed": self.status == 0,
            "faults": dict(self.faults),
            "lost": sorted(self.lost),
            "doubled": sorted(self.doubled),
            "returned": sorted(self.returned),
            "wrong": self.wrong,
            "kill_to_published": _quantiles(self.after_kill),
            "redis_back_to_published": _quantiles(self.after_redis),
            "push_to_visible_without_model": _quantiles(self.visible),
        }

    def print(self) -> None:
        table = Table("what", "result", title=f"Fault campaign, seed {self.seed}, {self.seconds:.0f} s")
        for kind, count in sorted(self.faults.items(), key=lambda item: -item[1]):
            table.add_row(f"fault: {kind}", f"{count:,}")
        table.add_section()
        table.add_row("kills of the daemon (SIGKILL)", f"{self.kills:,}")
        table.add_row("sessions; audits of every message", f"{self.sessions:,}; {self.audits:,}")
        table.add_row("messages sent (acknowledged by Redis)", f"{self.acknowledged:,}")
        table.add_row("sent again: unacknowledged; by a restarted listener", f"{self.retried:,}; {self.repeated:,}")
        table.add_row("messages that Redis had not any more when it fell back", f"{self.fell_back:,}")
        table.add_row("… and that could not be told from others if sent again", f"{self.given_up:,}")
        table.add_row("conversations forgotten", f"{self.forgotten:,}")
        table.add_row("dead letters, as expected", f"{self.dead_letters:,}")
        table.add_row("refused for good by archive or memory, and put back in the end", f"{self.refused:,}")
        table.add_row("summaries archived, each once", f"{self.summaries:,}")
        table.add_row("messages summarized without the model, which failed for too long", f"{self.degraded:,}")
        table.add_section()
        for what, samples, unit in (
            ("kill -9 → published by the next process", self.after_kill, 1),
            ("Redis back → published again", self.after_redis, 1),
            ("push → visible while the model fails", self.visible, 1000),
        ):
            table.add_row(f"{what}, p50 / p95", _told(samples, unit))
        table.add_section()
        table.add_row("[bold]lost[/]", _verdict(len(self.lost)))
        table.add_row("[bold]doubled[/]", _verdict(len(self.doubled)))
        table.add_row("[bold]back although forgotten[/]", _verdict(len(self.returned)))
        table.add_row("[bold]otherwise wrong[/]", _verdict(len(self.wrong)))
        console = Console(width=110)
        console.print(table)
        for words in [
            *sorted(self.lost)[:10],
            *sorted(self.doubled)[:10],
            *sorted(self.returned)[:10],
            *self.wrong[:20],
        ]:
            console.print(words, style="red", markup=False, soft_wrap=True)


def _tell(words: str) -> None:
    Console(stderr=True, soft_wrap=True, markup=False).print(words)


def _verdict(count: int) -> str:
    return f"[bold {'red' if count else 'green'}]{count:,}[/]"


def _quantiles(samples: Sequence[float]) -> dict[str, float] | None:
    if len(samples) < 2:
        return None
    p50, p95 = p50_p95(samples)
    return {"p50": p50, "p95": p95, "max": max(samples), "samples": len(samples)}


def _told(samples: Sequence[float], unit: int) -> str:
    figures = _quantiles(samples)
    if figures is None:
        return "–"
    p50, p95 = figures["p50"], figures["p95"]
    told = f"{p50 * 1000:.1f} / {p95 * 1000:.1f} ms" if unit == 1000 else f"{p50:.2f} / {p95:.2f} s"
    return f"{told} of {len(samples):,}"
