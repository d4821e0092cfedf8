"""Outcomes tell how packages did, by what they were made of: their size, policy and signals, and each source. Pure.

An interval is Wilson's score interval at 95 % (Wilson 1927), of the mean of values from 0 to 1 as of a share, which is
never too narrow: no such values vary more than zeros and ones of the same mean.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from pydantic import BaseModel

from context_builder.knowledge.artifact import CamelModel, Time

MOST_RATED: Final = 10_000
"""Packages that are looked at, the latest rated ones."""

MOST_SOURCES: Final = 200
MOST_NOTES: Final = 50

SIZES: Final = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
"""Upper bounds of the sizes that are told apart, in tokens."""

_Z: Final = 1.96

_SHOWN_OF_HASH: Final = 12
"""Characters by which versions of policies are told apart."""


class RatedSource(BaseModel):
    """A source of a rated package."""

    ref: str
    tokens: int = 0
    signals: dict[str, float] = {}
    projection: str = ""


class RatedPackage(BaseModel):
    """A package that has feedback: the mean outcome that its callers report, and the latest note."""

    package_id: str
    outcome: float | None
    callers: int
    note: str | None
    at: datetime
    tokens_used: int
    token_budget: int
    policy_version: str
    sources: tuple[RatedSource, ...]


class OutcomeGroup(CamelModel):
    """The mean outcome of a group of packages, 0 to 1, how many there are, and the bounds of the mean at 95 %.

    ``title`` says in words what a ``name`` means that people cannot read, and is empty for the others.
    """

    name: str
    title: str = ""
    packages: int
    mean: float
    low: float
    high: float


class OutcomeNote(CamelModel):
    """The latest note about a package."""

    context_package_id: str
    outcome: float | None
    note: str
    at: Time


class Outcomes(CamelModel):
    """The outcomes of all packages that were rated, by what the packages were made of.

    ``by_signal`` tells apart the halves of the packages whose sources score higher and lower by it, ``by_source`` has
    the sources that most packages show.
    """

    packages: int
    overall: OutcomeGroup | None
    by_size: tuple[OutcomeGroup, ...]
    by_policy: tuple[OutcomeGroup, ...]
    by_signal: tuple[OutcomeGroup, ...]
    by_source: tuple[OutcomeGroup, ...]
    notes: tuple[OutcomeNote, ...]


def outcomes_of(rated: Sequence[RatedPackage], policies_now: str = "") -> Outcomes:
    """Return the outcomes of rated packages; ``policies_now`` is the version of the policies in force, if known."""
    told = [one for one in rated if one.outcome is not None]
    notes = (one for one in rated if one.note)
    return Outcomes(
        packages=len(told),
        overall=_group("all", told),
        by_size=_groups(_by(told, lambda one: [_size(one.tokens_used)]), order=_SIZE_NAMES),
        by_policy=tuple(
            one.model_copy(update={"title": _policies_title(one.name, policies_now)})
            for one in _groups(_by(told, lambda one: [one.policy_version]))
        ),
        by_signal=_by_signal(told),
        by_source=_groups(_by(told, lambda one: {source.ref for source in one.sources}))[:MOST_SOURCES],
        notes=tuple(
            OutcomeNote(context_package_id=one.package_id, outcome=one.outcome, note=one.note or "", at=one.at)
            for _, one in zip(range(MOST_NOTES), notes, strict=False)
        ),
    )


_SIZE_NAMES: Final = (*(f"at most {most:,} tokens" for most in SIZES), f"more than {SIZES[-1]:,} tokens")


def _size(tokens: int) -> str:
    """Return the name of the size that so many tokens are."""
    return next((name for most, name in zip(SIZES, _SIZE_NAMES, strict=False) if tokens <= most), _SIZE_NAMES[-1])


def _policies_title(version: str, policies_now: str) -> str:
    """Return what policies are called: a version is a hash, so they are those in force or earlier ones."""
    if not version:
        return "no policies"
    if version == policies_now:
        return "the policies in force"
    which = "earlier policies" if policies_now else "policies"
    return f"{which}, {version.partition(':')[2][:_SHOWN_OF_HASH]}"


def _by(
    rated: Iterable[RatedPackage], names: Callable[[RatedPackage], Iterable[str]]
) -> Mapping[str, list[RatedPackage]]:
    groups: dict[str, list[RatedPackage]] = defaultdict(list)
    for one in rated:
        for name in names(one):
            groups[name].append(one)
    return groups


def _groups(
    groups: Mapping[str, Sequence[RatedPackage]], order: Sequence[str] | None = None
) -> tuple[OutcomeGroup, ...]:
    """Return the groups in an order, or those of most packages first."""
    names = [name for name in order if name in groups] if order else sorted(groups, key=lambda n: (-len(groups[n]), n))
    return tuple(made for name in names if (made := _group(name, groups[name])) is not None)


def _group(name: str, rated: Sequence[RatedPackage]) -> OutcomeGroup | None:
    values = [one.outcome for one in rated if one.outcome is not None]
    if not values:
        return None
    mean = statistics.fmean(values)
    low, high = interval(mean, len(values))
    return OutcomeGroup(name=name, packages=len(values), mean=round(mean, 4), low=round(low, 4), high=round(high, 4))


def interval(mean: float, count: int) -> tuple[float, float]:
    """Return the bounds of a mean of ``count`` values from 0 to 1."""
    spread = _Z * math.sqrt(mean * (1 - mean) / count + _Z**2 / (4 * count**2))
    middle = mean + _Z**2 / (2 * count)
    whole = 1 + _Z**2 / count
    return max((middle - spread) / whole, 0.0), min((middle + spread) / whole, 1.0)


def _by_signal(rated: Sequence[RatedPackage]) -> tuple[OutcomeGroup, ...]:
    made: list[OutcomeGroup] = []
    shown = [one for one in rated if one.sources]
    names = dict.fromkeys(name for one in shown for source in one.sources for name in source.signals)
    for name in names:
        scores = [statistics.fmean(source.signals.get(name, 0.0) for source in one.sources) for one in shown]
        middle = statistics.median(scores)
        halves = {
            f"{name}: higher": [one for one, score in zip(shown, scores, strict=True) if score > middle],
            f"{name}: lower": [one for one, score in zip(shown, scores, strict=True) if score <= middle],
        }
        if all(halves.values()):  # a half alone compares nothing
            made += _groups(halves, order=list(halves))
    return tuple(made)
