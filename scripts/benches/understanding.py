"""How good plain text analysis and the check of points are: ``./scripts/bench understanding --data DIR --meeting DIR``.

``DIR`` holds JSON lines files of labelled texts:

* ``keyphrases_*.jsonl``  ``text``, ``keyphrases``, ``set``
* ``domains_*.jsonl``     ``text``, ``domain``, ``alt`` (acceptable neighbours), ``source`` (genre)
* ``meetings_*.jsonl``    ``meeting``, ``message_number``, ``turn``, ``speaker``, ``text``

The meeting's folder holds ``meeting.json`` (``n``, ``speaker``, ``text``), and its points, ``true.json`` and
``fabricated.json`` (``text``, ``kind``, ``by``, ``evidence`` with ``m`` and ``q``). Either folder may be left out.

Every figure stands beside a simple baseline of the same run where there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from context_builder.analysis.analyst import Analyst, AnalystMessage, SummaryRequest
from context_builder.analysis.text import TextAnalyst
from scripts.benches.shared.labelled import Row, rows_of
from scripts.benches.shared.report import NONE, Line, Report, p95
from scripts.benches.texts.domain_calls import domain_call_lines
from scripts.benches.texts.evidence import evidence_lines
from scripts.benches.texts.prompt_cost import dollar_lines, prompt_cost_lines

Phrase = tuple[str, ...]

SUMMARY_MESSAGES = 60
"""Messages in one summary of a meeting: about two minutes of lively talk."""


def light_stems(text: str) -> Phrase:
    """Lower case, no punctuation, no plural: what two spellings of one phrase have in common."""
    return tuple(re.sub(r"(?<=[^s\W]{2})(?<![ui])s$", "", word) for word in re.findall(r"[^\W_]+", text.lower()))


# keyphrases


def f1_at_10(found: Iterable[str], gold: Iterable[str]) -> float:
    right = {light_stems(phrase) for phrase in gold}
    given = list(dict.fromkeys(light_stems(phrase) for phrase in found))[:10]
    hits = sum(phrase in right for phrase in given)
    return 2 * hits / (len(given) + len(right)) if given or right else 0.0


def tfidf_keyphrases(rows: Sequence[Row]) -> Callable[[str], list[str]]:
    """Baseline: the runs of words without a short word in them, by the TF-IDF of their words."""
    spread = Counter(word for row in rows for word in set(light_stems(row["text"])))

    def extract(text: str) -> list[str]:
        counts = Counter(light_stems(text))
        runs = dict.fromkeys(
            run.strip() for run in re.findall(r"(?:\b[\w-]{4,}\b ?){1,3}", text.lower()) if run.strip()
        )

        def score(run: str) -> float:
            return sum(counts[w] * math.log(len(rows) / (1 + spread[w])) for w in light_stems(run))

        return sorted(runs, key=score, reverse=True)[:10]

    return extract


async def measure_keyphrases(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    baseline = tfidf_keyphrases(rows)
    ours: defaultdict[str, list[float]] = defaultdict(list)
    naive: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        reading = await analyst.extract_keywords([AnalystMessage(1, "", row["text"])])
        for group in ("all", row["set"]):
            ours[group].append(f1_at_10(reading.keywords[0], row["keyphrases"]))
            naive[group].append(f1_at_10(baseline(row["text"]), row["keyphrases"]))
    for group in sorted(ours, key=lambda name: (name != "all", name)):
        found = statistics.mean(ours[group])
        report.add(
            Line(
                f"keyphrase F1@10, mean of {len(ours[group])} texts, {group}",
                f"{found:.3f}",
                goal="0.24" if group == "all" else NONE,
                reached=found >= 0.24 if group == "all" else None,
                baseline=f"{statistics.mean(naive[group]):.3f} (TF-IDF)",
            )
        )


# domains


class NaiveBayes:
    """Baseline: multinomial naive Bayes over words, trained on the other genres."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            self._counts[row["domain"]].update(light_stems(row["text"]))
        self._vocabulary = len(set().union(*self._counts.values()))
        self._totals = {domain: counts.total() for domain, counts in self._counts.items()}

    def domain_of(self, text: str) -> str:
        spoken = light_stems(text)

        def log_likelihood(domain: str) -> float:
            counts, total = self._counts[domain], self._totals[domain] + self._vocabulary
            return sum(math.log((counts[word] + 1) / total) for word in spoken)

        return max(self._counts, key=log_likelihood)


def by_bayes(rows: Sequence[Row]) -> list[str | None]:
    sources = {row["source"] for row in rows}
    if len(sources) < 2:
        return [None] * len(rows)
    trained = {source: NaiveBayes(row for row in rows if row["source"] != source) for source in sources}
    return [trained[row["source"]].domain_of(row["text"]) for row in rows]


async def measure_domains(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    inferred: list[str | None] = []
    for row in rows:
        reading = await analyst.infer_domains([AnalystMessage(1, "", row["text"])])
        inferred.append(next(iter(reading.confidence), None))
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups["all"].append(index)
        groups[row["source"]].append(index)
    baseline = by_bayes(rows)
    for group, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        strict, near = accuracy(rows, inferred, members)
        naive = accuracy(rows, baseline, members)
        report.add(
            Line(
                f"domain accuracy strict / with neighbours, {group} ({len(members)})",
                f"{strict:.3f} / {near:.3f}",
                goal="0.50 / 0.60" if group == "all" else NONE,
                reached=strict >= 0.5 and near >= 0.6 if group == "all" else None,
                baseline=f"{naive[0]:.3f} / {naive[1]:.3f} (Bayes, other genres)",
            )
        )
    none = share(domain is None for domain in inferred)
    report.add(Line("texts of a domain that got none (counted as wrong above)", none))


def accuracy(rows: Sequence[Row], inferred: Sequence[str | None], members: Sequence[int]) -> tuple[float, float]:
    """Strict, and with acceptable neighbours."""
    strict = sum(inferred[index] == rows[index]["domain"] for index in members)
    near = sum(inferred[index] in (rows[index]["domain"], *rows[index]["alt"]) for index in members)
    return strict / len(members), near / len(members)


# summaries and speed


async def measure_summaries(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    meetings: defaultdict[str, list[AnalystMessage]] = defaultdict(list)
    for number, row in enumerate(rows):
        meetings[row["meeting"]].append(AnalystMessage(number, row["speaker"], row["text"]))
    cites: list[bool] = []
    grounded: list[bool] = []
    for said in meetings.values():
        for start in range(0, len(said), SUMMARY_MESSAGES):
            given = {message.id: message for message in said[start : start + SUMMARY_MESSAGES]}
            for point in (await analyst.summarize(SummaryRequest(list(given.values())))).points:
                cites.append(1 <= len(point.cites) <= 5 and all(cited in given for cited in point.cites))
                said_in = " ".join(f"{given[cited].speaker} {given[cited].text}" for cited in point.cites)
                source = set(re.findall(r"\w+", said_in.lower()))
                grounded.append(source.issuperset(re.findall(r"\w+", point.text.lower())))
    report.add(every(f"points that cite only messages given ({len(cites)} points)", cites))
    report.add(every("points all of whose words occur in what they cite, speakers' names included", grounded))
    report.add(Line("points per 100 messages", f"{100 * len(cites) / len(rows):.1f}"))


async def measure_speed(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    messages = [AnalystMessage(number, row["speaker"], row["text"]) for number, row in enumerate(rows)]
    taken: list[float] = []
    for message in messages:
        start = time.perf_counter()
        await analyst.extract_keywords([message])
        taken.append(1000 * (time.perf_counter() - start))
    slow = p95(taken)
    measured = f"{statistics.median(taken):.2f} / {slow:.2f} ms"
    report.add(Line("keywords of one message, p50 / p95", measured, goal="5 ms", reached=slow <= 5))
    backlog = (messages * math.ceil(10_000 / len(messages)))[:10_000]
    start = time.perf_counter()
    await analyst.summarize(SummaryRequest(backlog))
    report.add(Line("summary of 10,000 messages", f"{time.perf_counter() - start:.1f} s"))


def every(what: str, hits: Sequence[bool]) -> Line:
    return Line(what, share(hits), goal="100 %", reached=all(hits))


def share(hits: Iterable[bool]) -> str:
    counted = list(hits)
    return f"{100 * sum(counted) / len(counted):.1f} %" if counted else "–"


async def measure(data: Path | None, meeting: Path | None) -> Report:
    report = Report("Understanding: plain text analysis, and the check of points")
    report.extend(evidence_lines(meeting))
    if data:
        await measure_text_analysis(data, report)
    return report


async def measure_text_analysis(data: Path, report: Report) -> None:
    analyst = TextAnalyst()
    try:
        if rows := rows_of(data, "keyphrases", report):
            await measure_keyphrases(rows, analyst, report)
        if rows := rows_of(data, "domains", report):
            await measure_domains(rows, analyst, report)
            report.extend(await domain_call_lines(rows, analyst))
        if rows := rows_of(data, "meetings", report):
            await measure_summaries(rows, analyst, report)
            await measure_speed(rows, analyst, report)
            report.extend(await prompt_cost_lines([row["text"] for row in rows]))
            report.extend(await dollar_lines(rows))
    finally:
        await analyst.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the labelled texts")
    parser.add_argument("--meeting", type=Path, help="folder with a meeting and points of it")
    options = parser.parse_args()
    report = asyncio.run(measure(options.data, options.meeting))
    report.print()
    return 1 if report.missing else 0


if __name__ == "__main__":
    sys.exit(main())
