"""The gallery shows the rolling summary of whole conversations as it stood at some minutes: ``./scripts/gallery``.

    ./scripts/gallery                     say where docs/explanation/summaries.md differs from what comes out now
    ./scripts/gallery --write             write it there
    ./scripts/gallery --record            ask the model at OPENAI_BASE_URL for the replies that the cassettes lack
    ./scripts/gallery --show FILE         print those of any conversation; with --record, its cassette stands beside it
    ./scripts/gallery --show FILE --plain the same by plain text analysis, without a model

A conversation is a file of JSON lines, a message each: ``at`` (seconds from its start), ``speaker``, ``text``. It runs
through the real conversation, prompts, check and ledger, on a clock of its own. A cassette holds a model's replies by
what it was asked (the part of the prompt that varies), so a change of code that changes a summary shows as a diff, and
one that changes a question asks for a new recording.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from context_builder.analysis.analyst import Analyst
from context_builder.analysis.openai import CallOptions, Endpoint, OpenAIAnalyst, TaskConfig
from context_builder.analysis.openai.capabilities import Question
from context_builder.analysis.openai.client import ModelClient
from context_builder.analysis.openai.completion import Meter
from context_builder.analysis.openai.reply import parse_reply
from context_builder.analysis.openai.schemas import Reply
from context_builder.analysis.prompts import load_prompts
from context_builder.analysis.text import TextAnalyst
from context_builder.costs import NO_USAGE, Prices, Usage
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.messages.message import Message, from_fields
from context_builder.testing import ManualClock
from context_builder.tokens.counter import TokenCounter

ROOT: Final = Path(__file__).parents[1]
CASSETTES: Final = ROOT / "tests" / "cassettes"
PAGE: Final = ROOT / "docs" / "explanation" / "summaries.md"
MARK: Final = "<!-- What follows is written by ./scripts/gallery --write. -->\n"
MINUTES: Final = (5, 10, 20, 30, 60)
TITLES: Final[Mapping[str, str]] = {
    "research-meeting": "A research meeting",
    "support-call": "A support call",
    "vorlesung": "A lecture, in German",
}
DAYS: Final[Mapping[str, datetime]] = {
    "research-meeting": datetime(2026, 4, 14, 10),
    "support-call": datetime(2026, 5, 12, 14),
    "vorlesung": datetime(2026, 6, 10, 10, 15),
}
"""When they were held, by what is said in them."""

T = TypeVar("T")


class CassetteError(Exception):
    """Raised for a question that a cassette has no reply to."""


class RecordedClient:
    """Answers from a cassette; what it lacks is asked of ``model``, where there is one, and recorded.

    ``exchanges`` are the questions that were asked, each with the JSON of its reply.
    """

    def __init__(self, path: Path, model: ModelClient | None = None) -> None:
        self._path = path
        self._model = model
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._replies: dict[str, Any] = {one["key"]: one["reply"] for one in map(json.loads, lines)}
        self.used: set[str] = set()
        self.exchanges: list[tuple[Question, str]] = []

    async def ask(self, question: Question, read: Callable[..., T]) -> tuple[T, Usage]:
        """Return the recorded reply as parsed by ``read``."""
        reply = await (self._verdicts if question.task == "verification" else self._reply)(question, read)
        self.exchanges.append((question, reply.model_dump_json(by_alias=True)))
        return read(reply), NO_USAGE

    async def _reply(self, question: Question, read: Callable[..., Any]) -> Any:
        key = _key(question.task, question.varying)
        if key not in self._replies:
            self._record(key, question, await self._asked(question, read))
        self.used.add(key)
        return parse_reply(question.reply, json.dumps(self._replies[key]))

    async def _verdicts(self, question: Question, read: Callable[..., Any]) -> Any:
        """Return the verdicts, which are recorded by their sentences: whatever else is in doubt, they stay the same."""
        sentences = [one for one in re.split(r"\n(?=\d+ )", question.varying.strip()[len("<points>\n") :]) if one]
        keys = [_key(question.task, sentence.partition(" ")[2].removesuffix("\n</points>")) for sentence in sentences]
        if any(key not in self._replies for key in keys):
            reply: Any = await self._asked(question, read)
            for key, verdict in zip(keys, reply.of(len(keys)), strict=True):
                self._record(key, question, verdict)
        self.used.update(keys)
        verdicts = [{"number": number, "supported": self._replies[key]} for number, key in enumerate(keys, start=1)]
        return parse_reply(question.reply, json.dumps({"verdicts": verdicts}))

    async def _asked(self, question: Question, read: Callable[..., Any]) -> Any:
        """Return the model's reply, which is asked for again where it cannot be read."""
        if self._model is None:
            what = f"a question of the task {question.task!r} that the recorded model was not asked"
            raise CassetteError(f"{self._path.name}: {what}; record its reply: ./scripts/gallery --record")

        def readable(reply: Any) -> Any:
            read(reply)
            return reply

        return (await self._model.ask(question, readable))[0]

    def _record(self, key: str, question: Question, reply: Any) -> None:
        self._replies[key] = reply.model_dump(mode="json", by_alias=True) if isinstance(reply, Reply) else reply
        line = {"key": key, "task": question.task, "reply": self._replies[key]}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def prune(self) -> None:
        """Drop the replies to questions that were not asked."""
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        kept = [line for line in lines if json.loads(line)["key"] in self.used]
        self._path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def notes(self, model: str) -> list[str]:
        return []

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()


def _key(task: str, asked: str) -> str:
    return hashlib.sha256(f"{task}\n{asked}".encode()).hexdigest()[:24]


def recorded_analyst(cassette: Path, *, record: bool) -> tuple[OpenAIAnalyst, RecordedClient]:
    """Return an analyst that is asked as always and answered by the cassette."""
    tasks, prompts = TaskConfig(), load_prompts()
    endpoint = Endpoint(os.environ.get("OPENAI_API_KEY", "none"), os.environ.get("OPENAI_BASE_URL"))
    meter = Meter(Prices(), None, TokenCounter(tasks.summary_model).count)
    patient = CallOptions(timeout=3600.0, attempts=2)
    client = RecordedClient(cassette, ModelClient(endpoint, patient, prompts.json_mode, meter) if record else None)
    return OpenAIAnalyst(endpoint, prompts, tasks=tasks, client=client), client


def messages_of(path: Path) -> list[tuple[float, Message]]:
    """Return a conversation's messages and the seconds at which they were said."""
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines()]
    clock, start = ManualClock(), DAYS.get(path.stem, datetime(2026, 3, 2, 10))
    said = []
    for number, row in enumerate(rows, start=1):
        at = start + timedelta(seconds=row["at"])
        fields = {"message_number": number, "timestamp": at.isoformat(), "type": "user", **row}
        said.append((float(row["at"]), from_fields(fields, clock.now())))
    return said


async def summaries(said: Sequence[tuple[float, Message]], analyst: Analyst) -> AsyncIterator[tuple[int, Conversation]]:
    """Yield the conversation at each of :data:`MINUTES`, and at its end when it is over before."""
    clock = ManualClock()
    subject = Conversation("gallery", SessionConfig(), clock.now(), TokenCounter("gpt-4o").count)
    waiting, end = list(said), said[-1][0]
    for second in range(60 * MINUTES[-1] + 1):
        due = [message for at, message in waiting if at <= second]
        if due:
            subject.receive(due, clock.now())
            del waiting[: len(due)]
        if second > end:
            subject.close()
        await _understand(subject, analyst, clock)
        if second % 60 == 0 and second // 60 in MINUTES:
            yield second // 60, subject
            if second > end:
                return
        clock.advance(1.0)


async def _understand(subject: Conversation, analyst: Analyst, clock: ManualClock) -> None:
    while subject.summary_due(clock.now()) and (task := subject.next_summary_task()) is not None:
        subject.finish(task, await analyst.summarize(task.request), clock.now())
    while (compact := analyst.compact) is not None and (rewriting := subject.next_compaction_task()) is not None:
        subject.finish(rewriting, await compact(rewriting.request), clock.now())
    subject.take_changes()


def rendered(minute: int, subject: Conversation) -> str:
    """Return the summary at that minute as Markdown."""
    text = subject.summary.ledger.render()
    tokens = TokenCounter("gpt-4o").count(text)
    covered = f"{subject.summary.message_count} of {subject.received} messages, {tokens} tokens"
    return f"#### After {minute} minutes ({covered})\n\n```text\n{text}\n```\n"


async def shown(said: Sequence[tuple[float, Message]], analyst: Analyst) -> str:
    """Return the summaries as Markdown."""
    return "\n".join([rendered(*moment) async for moment in summaries(said, analyst)])


async def gallery(*, record: bool) -> str:
    """Return the whole gallery as Markdown."""
    parts = []
    for name, title in TITLES.items():
        analyst, client = recorded_analyst(CASSETTES / f"{name}.replies.jsonl", record=record)
        text = await shown(messages_of(CASSETTES / f"{name}.jsonl"), analyst)
        parts.append(f"### {title}\n\n{text}")
        await analyst.close()
        if record:
            client.prune()
    return "\n".join(parts)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./scripts/gallery", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the gallery into its page")
    parser.add_argument("--record", action="store_true", help="ask the model at OPENAI_BASE_URL for missing replies")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print the summaries of this conversation instead")
    parser.add_argument("--plain", action="store_true", help="by plain text analysis, without a model")
    return parser.parse_args()


async def _show(path: Path, *, record: bool, plain: bool) -> str:
    analyst: Analyst = TextAnalyst()
    if not plain:
        analyst, client = recorded_analyst(path.with_suffix(".replies.jsonl"), record=record)
    try:
        text = await shown(messages_of(path), analyst)
    finally:
        await analyst.close()
    if record and not plain:
        client.prune()
    return text


def _differences(now: str, page: str) -> Iterator[str]:
    import difflib

    yield from difflib.unified_diff(page.splitlines(), now.splitlines(), str(PAGE), "now", lineterm="", n=1)


def main() -> int:
    asked = _arguments()
    try:
        if asked.show is not None:
            print(asyncio.run(_show(asked.show, record=asked.record, plain=asked.plain)))
            return 0
        now = asyncio.run(gallery(record=asked.record))
    except CassetteError as error:
        print(error, file=sys.stderr)
        return 1
    before, mark, page = PAGE.read_text(encoding="utf-8").partition(MARK)
    if asked.write:
        PAGE.write_text(f"{before}{MARK}\n{now}", encoding="utf-8")
        return 0
    differences = [*_differences(now, page.lstrip("\n"))] if mark else ["the page has no gallery yet: --write"]
    print("\n".join(differences))
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
