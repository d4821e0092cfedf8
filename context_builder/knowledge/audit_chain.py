"""The audit chain: each row of ``policy_audit`` has the hash of the one before it, and each day ends with an anchor.

A package's last row has the hash of all else that its audit tells, texts included, as far as these are not erased.

Hashes are computed here, from the rows as they are now, so that nothing in the database is taken at its word but what
an exported anchor confirms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from context_builder.concurrency import beside_loop
from context_builder.database.database import Database
from context_builder.errors import AuditAnchorError

PAGE: Final = 20_000
"""Rows that are read at a time."""

PACKAGES: Final = 200
"""Packages that are read at a time, with all that is told of them."""

MOST_FINDINGS: Final = 10

_EPOCH: Final = date(2000, 1, 1)
_HASH: Final = "sha256:"

# Places in a row's line behind the tenant; "previous" and "digest" are its end.
_DAY, _DECISION, _PACKAGE, _REF = 0, 3, 4, 8


@dataclass(frozen=True, slots=True)
class Anchor:
    """How the rows of a tenant's day end: the number and hash of the last one, and how many the day has."""

    tenant: str
    day: str
    seq: int
    count: int
    digest: str

    def as_json(self) -> dict[str, Any]:
        """Return the anchor as it is exported, and told by the event ``AuditAnchored``."""
        fields = {"tenantId": self.tenant, "day": self.day, "seq": self.seq, "count": self.count}
        return fields | {"hash": _HASH + self.digest}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Anchor:
        """Return an exported anchor. Raises :class:`KeyError`, :class:`TypeError` and :class:`ValueError`."""
        digest = bytes.fromhex(str(fields["hash"]).removeprefix(_HASH)).hex()
        day = date.fromisoformat(fields["day"]).isoformat()
        return cls(str(fields["tenantId"]), day, int(fields["seq"]), int(fields["count"]), digest)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: rows ``first`` to ``last`` were ``altered``, ``removed`` or ``rewritten``.

    Of rewritten rows each fits the one before it, but not the anchor of ``day``: at least one of them was altered.
    """

    kind: str
    first: int
    last: int
    day: str
    detail: str = ""

    def __str__(self) -> str:
        rows = f"row {self.first:,}" if self.first == self.last else f"rows {self.first:,} to {self.last:,}"
        verb = "was" if self.first == self.last else "were"
        day = f" of {self.day}" if self.day else ""
        return f"{rows}{day} {verb} {self.kind}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What a verification found: how many rows it read, from which number on, and what is wrong, in order."""

    tenant: str
    rows: int
    first: int
    findings: tuple[Finding, ...]

    @property
    def is_intact(self) -> bool:
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """Return the report for programs."""
        findings = [asdict(one) for one in self.findings]
        counts = {"rows": self.rows, "first": self.first}
        return {"tenantId": self.tenant, "intact": self.is_intact, **counts, "findings": findings}


def read_anchors(file: Path) -> list[Anchor]:
    """Return the anchors of an exported file, a JSON object a line. Raises :class:`AuditAnchorError`."""
    anchors = []
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise AuditAnchorError(f"{file} cannot be read: {type(error).__name__}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                anchors.append(Anchor.from_json(json.loads(line)))
            except (KeyError, TypeError, ValueError):
                raise AuditAnchorError(f"{file}, line {number}: not an anchor as `audit anchors` writes it") from None
    if not anchors:  # which would verify anything
        raise AuditAnchorError(f"{file} holds no anchor")
    return anchors


async def anchors_of(database: Database, tenant_id: str) -> list[Anchor]:
    """Return the tenant's anchors that are kept, the oldest first."""
    return _anchors(tenant_id, (await database.call("context_package_audit_state", tenant_id, {}))[0])


async def verify(
    database: Database,
    tenant_id: str,
    *,
    oldest: date,
    exported: Iterable[Anchor] = (),
    on_page: Callable[[int], None] = lambda rows: None,
) -> AuditReport:
    """Verify a tenant's rows, those from ``oldest`` on and what is left of earlier ones, and return what is wrong.

    Begins at the last anchor before ``oldest``, else at the first row there ever was. ``exported`` anchors show whether
    the chain was written anew, which those in the database, altered along with it, cannot. ``on_page`` is told
    the rows read so far. Reads 20,000 rows at a time.
    """
    state = (await database.call("context_package_audit_state", tenant_id, {}))[0]
    own = _anchors(tenant_id, state)
    base = max((one for one in own if one.day < oldest.isoformat()), key=lambda one: one.seq, default=None)
    others = [one for one in exported if one.tenant == tenant_id]
    chain = _Chain(tenant_id, base, state["head"], own, others)
    chain.check_begin(base, [one for one in others if one.day >= oldest.isoformat()])
    day, seq = (0, 0) if base is None else (_days(base.day), base.seq)
    while page := await database.call(
        "context_package_audit_rows", tenant_id, {"after_day": day, "after_seq": seq, "most": PAGE}
    ):
        day, seq = chain.read(page)
        on_page(chain.rows)
        if chain.is_done:
            break
    findings = [] if len(chain.report().findings) >= MOST_FINDINGS else await _untold(database, tenant_id, base, oldest)
    return chain.report(findings)


async def _untold(database: Database, tenant_id: str, base: Anchor | None, oldest: date) -> list[Finding]:
    """Return what an audit would tell otherwise than it was: requests, callers, decisions, verdicts and texts."""
    day, seq = (0, 0) if base is None else (_days(base.day), base.seq)
    findings: list[Finding] = []
    while len(findings) < MOST_FINDINGS and (
        page := await database.call(
            "context_package_audit_told", tenant_id, {"after_day": day, "after_seq": seq, "most": PACKAGES}
        )
    ):
        day, seq = int(page[-1]["day"]), int(page[-1]["seq"])
        findings += await beside_loop(lambda rows: list(filter(None, map(_told_otherwise, rows))), page)
    return [one for one in findings if one.day >= oldest.isoformat()]


def _told_otherwise(row: Mapping[str, Any]) -> Finding | None:
    where = _date(int(row["day"]))
    named = f"decision {row['decision_id']}, package {row['package_id']}"
    if row["told"] is None:
        what = f"{named}: what it tells is not there" if row["is_kept"] else ""
        return Finding("removed", row["seq"], row["seq"], where, what) if what else None
    if sha256(row["told"].encode()).hexdigest() != row["hash"]:
        return Finding("altered", row["seq"], row["seq"], where, f"{named}: request, caller, decision or verdicts")
    if not row["is_found"]:
        return Finding("altered", row["seq"], row["seq"], where, f"{named}: what leads to it")
    for ref, digest, *texts in row["contents"]:
        if sha256("\n".join(texts).encode()).hexdigest() != digest:
            return Finding("altered", row["seq"], row["seq"], where, f"{named}: the text of {ref}")
    if row["missing"]:
        what = f"{named}: the text of {row['missing'][0]}, of which no erasure is on record"
        return Finding("removed", row["seq"], row["seq"], where, what)
    return None


class _Chain:
    """Follows the rows, and notes where they do not fit."""

    def __init__(
        self,
        tenant: str,
        base: Anchor | None,
        head: Mapping[str, Any] | None,
        own: Sequence[Anchor],
        exported: Sequence[Anchor],
    ) -> None:
        self.rows = 0
        self._tenant = tenant
        self._first = base.seq + 1 if base else 1
        self._expected = self._first
        genesis = sha256(f"context_builder.policy_audit {tenant}".encode()).hexdigest()
        self._digest = base.digest if base else genesis
        self._day = base.day if base else ""
        self._head = (int(head["seq"]), str(head["hash"])) if head else (0, genesis)
        self._anchors: dict[int, list[Anchor]] = {}
        self._closing = {one.seq: one for one in own}
        for one in (*exported, *own):
            if one.seq >= self._first - 1:
                self._anchors.setdefault(one.seq, []).append(one)
        self._confirmed = self._first - 1
        self._findings: list[Finding] = []
        self._last_line = ""

    def check_begin(self, base: Anchor | None, kept: Iterable[Anchor]) -> None:
        """Note days that should be kept and are before the ``base``, as if their time were over, and another base."""
        for one in kept:
            if one.seq < self._first:
                self._note("removed", one.seq - one.count + 1, one.seq, one.day)
        for one in self._anchors.pop(self._first - 1, ()):
            if base is not None and one.digest != base.digest:
                self._note(
                    "rewritten", one.seq - one.count + 1, one.seq, one.day, f"the anchor of {one.day} is another"
                )

    @property
    def is_done(self) -> bool:
        """Return whether more would be of no use: all rows up to the head are read, or too much is wrong."""
        return self._expected > self._head[0] or len(self._findings) >= MOST_FINDINGS

    def read(self, page: Sequence[str]) -> tuple[int, int]:
        """Follow a page of rows; return the day and the number of its last one."""
        hashed, tenant = sha256, len(self._tenant) + 1
        day = seq = 0
        for row in page:
            line, previous, digest = row.rsplit("\t", 2)
            day_text, seq_text, _ = line[tenant:].split("\t", 2)
            day, seq = int(day_text), int(seq_text)
            if seq > self._head[0] and seq >= self._expected:  # written meanwhile
                continue
            self.rows += 1
            fits = hashed(bytes.fromhex(self._digest) + line.encode()).hexdigest() == digest
            if seq != self._expected or previous != self._digest or not fits:
                self._note_misfit(line, seq, previous, digest, fits=fits)
            if seq == self._expected and self._last_line and self._last.day != _date(day):
                self._check_closed(seq - 1)
            if seq >= self._expected:
                self._digest, self._expected = digest, seq + 1
                self._last_line = line
                if seq in self._anchors:
                    self._meet_anchors(seq, digest)
        return day, seq

    def report(self, told: Iterable[Finding] = ()) -> AuditReport:
        """Return what was found, once all rows are read, and what is ``told`` otherwise."""
        seq, digest = self._head
        if seq in self._closing and self._expected == seq + 1 and self._last_line:
            self._check_closed(seq)
        last_anchor = max(self._anchors, default=0)
        end = max(seq, last_anchor)
        if len(self._findings) < MOST_FINDINGS:
            if self._expected <= end:
                day = next((a.day for s in sorted(self._anchors) if s >= self._expected for a in self._anchors[s]), "")
                self._note("removed", self._expected, end, day)
            elif self._expected == seq + 1 and self._digest != digest:
                self._note("altered", seq, seq, self._last.day, self._last.detail)
        known = {one.first for one in self._findings}
        others = [one for one in told if one.first not in known]
        findings = sorted(dict.fromkeys((*self._findings, *others)), key=lambda one: one.first)
        return AuditReport(self._tenant, self.rows, self._first, tuple(findings[:MOST_FINDINGS]))

    def _check_closed(self, seq: int) -> None:
        """Note a day, of which this is the last row, whose own anchor is not there, or tells another day or count."""
        anchor, day = self._closing.get(seq), self._last.day
        if anchor is None:
            self._note("removed", seq, seq, day, f"the anchor of {day}")
        elif (anchor.day, anchor.count) != (day, seq - max((one for one in self._closing if one < seq), default=0)):
            self._note("altered", seq, seq, day, f"the anchor of {day}")

    def _note_misfit(self, line: str, seq: int, previous: str, digest: str, *, fits: bool) -> None:
        row = self._row(line)
        if seq < self._expected:  # there is another row of its number
            self._note("altered", seq, seq, row.day, row.detail)
            return
        is_whole = sha256(bytes.fromhex(previous) + line.encode()).hexdigest() == digest
        if seq > self._expected:
            self._note("removed", self._expected, seq - 1, "" if self._last.day != row.day else row.day)
            if not is_whole:
                self._note("altered", seq, seq, row.day, row.detail)
        elif is_whole and not fits and self._last.fields:  # it fits what the row before it was
            self._note("altered", seq - 1, seq - 1, self._last.day, self._last.detail)
        else:
            self._note("altered", seq, seq, row.day, row.detail)

    def _meet_anchors(self, seq: int, digest: str) -> None:
        for anchor in self._anchors[seq]:
            if anchor.digest != digest:
                if not any(self._confirmed < one.first <= seq for one in self._findings):
                    detail = f"the anchor of {anchor.day} is another"
                    self._note("rewritten", self._confirmed + 1, seq, anchor.day, detail)
                return
        self._confirmed = seq

    @property
    def _last(self) -> _Row:
        return self._row(self._last_line) if self._last_line else _Row()

    def _row(self, line: str) -> _Row:
        return _Row(tuple(line[len(self._tenant) + 1 :].split("\t")))

    def _note(self, kind: str, first: int, last: int, day: str, detail: str = "") -> None:
        self._findings.append(Finding(kind, first, last, day, detail))


@dataclass(frozen=True, slots=True)
class _Row:
    """Names a row by the fields of its line behind the tenant."""

    fields: tuple[str, ...] = ()

    @property
    def day(self) -> str:
        return _date(int(self.fields[_DAY])) if self.fields else ""

    @property
    def detail(self) -> str:
        fields = self.fields
        return f"decision {fields[_DECISION]}, package {fields[_PACKAGE]}, source {fields[_REF] or 'none'}"


def _anchors(tenant_id: str, state: Mapping[str, Any]) -> list[Anchor]:
    return [Anchor(tenant_id, one["day"], one["seq"], one["count"], one["hash"]) for one in state["anchors"]]


def _date(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).isoformat()


def _days(day: str) -> int:
    return (date.fromisoformat(day) - _EPOCH).days


def lines_of(anchors: Iterable[Anchor]) -> Iterator[str]:
    """Yield the lines of an exported file."""
    for one in anchors:
        yield json.dumps(one.as_json())
