"""``replay``: a recorded conversation, pushed as a listener would, with the times at which it was said."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from context_builder.cli.command import INTERRUPTED, connected, live_console, run, session_ids
from context_builder.cli.signals import stopped, stopping_signals
from context_builder.cli.view.palette import plain
from context_builder.session.client import JsonObject, SessionClient, contributed, spoken
from context_builder.transcript import Transcript, Utterance, read_transcript
from context_builder.transcript.moments import iso
from context_builder.transcript.utterance import moment_after

if TYPE_CHECKING:
    from rich.console import Console

BATCH: Final = 500
"""Most messages in one push."""

MOST_PROBLEMS: Final = 20
"""Things that could not be read that are named one by one."""

READING_PACE: Final = 15.0
"""Characters a second of natural speech (about 150 English words a minute), for what has no time."""

OnProgress = Callable[[int, int], None]
"""Told how many messages are pushed, and of how many."""


def schedule(utterances: Sequence[Utterance]) -> list[float]:
    """Yield the seconds from the start at which each utterance is due, never going back.

    What has no time comes when the utterance before it has been spoken, at ``READING_PACE``.
    """
    due: list[float] = []
    start = next((utterance.at for utterance in utterances if utterance.at is not None), 0.0)
    for index, utterance in enumerate(utterances):
        earliest = due[-1] if due else 0.0
        if utterance.at is not None:
            due.append(max(earliest, utterance.at - start))
        else:
            due.append(earliest + len(utterances[index - 1].text) / READING_PACE if index else 0.0)
    return due


def moments(transcript: Transcript) -> list[datetime] | None:
    """Return when each utterance was said; None where the transcript does not tell when it began.

    What has no time was said when the utterance before it had been spoken.
    """
    if transcript.started is None:
        return None
    first = next((utterance.at for utterance in transcript.utterances if utterance.at is not None), 0.0)
    due = schedule(transcript.utterances)
    told = [transcript.said_at(utterance) for utterance in transcript.utterances]
    reckoned = [moment_after(transcript.started, first + seconds) for seconds in due]
    return [own or other or transcript.started for own, other in zip(told, reckoned, strict=True)]


async def replay(
    client: SessionClient,
    utterances: Sequence[Utterance],
    *,
    said_at: Sequence[datetime] | None = None,
    speed: float = 1.0,
    on_progress: OnProgress | None = None,
    stop: asyncio.Event | None = None,
) -> int:
    """Push the utterances as a listener would, and return how many were pushed.

    They keep their distances in time divided by ``speed``; with 0 they go as fast as Redis
    takes them. Their timestamps are ``said_at``, or the moment of the push. Numbers go on from the session's. ``stop``
    or cancellation end it between two pushes. Raises :class:`StoreUnavailable` when Redis is gone.
    """
    stop = stop or asyncio.Event()
    due = [seconds / speed if speed else 0.0 for seconds in schedule(utterances)]
    number = await client.next_number()
    clock = asyncio.get_running_loop().time
    start, pushed = clock(), 0
    while pushed < len(utterances) and not await stopped(stop, start + due[pushed] - clock()):
        elapsed = clock() - start
        batch: list[JsonObject] = []
        for place in range(pushed, min(pushed + BATCH, len(utterances))):
            if due[place] > elapsed:
                break
            utterance, moment = utterances[place], said_at[place] if said_at else datetime.now()
            batch.append(_message(client.session_id, number, utterance, moment))
            number += utterance.contribution is None
        await client.push(*batch)
        pushed += len(batch)
        if on_progress:
            on_progress(pushed, len(utterances))
    return pushed


def _message(session_id: str, number: int, utterance: Utterance, at: datetime) -> JsonObject:
    if utterance.contribution is None:
        return spoken(session_id, number, utterance.speaker, utterance.text, at)
    return contributed(utterance.text, at, utterance.contribution)


def replay_command(
    file: Annotated[
        Path,
        typer.Argument(help="Transcript or export: a file, a .zip, or a Slack export folder.", show_default=False),
    ],
    session_id: Annotated[
        str, typer.Argument(help="Session that receives the messages.", show_default=False, autocompletion=session_ids)
    ],
    speed: Annotated[float, typer.Option(min=0, help="Speed relative to the original; 0: all at once.")] = 1.0,
    skip: Annotated[int, typer.Option(min=0, help="Messages to skip at the beginning of the file.")] = 0,
    started_at: Annotated[
        str | None,
        typer.Option(
            "--started-at",
            help="When it began, for a file without dates: ISO 8601, e.g. 2023-05-03T09:00.",
            show_default=False,
        ),
    ] = None,
    as_now: Annotated[bool, typer.Option("--as-now", help="Push it as if it were said now.")] = False,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Channel of a Slack export to read.", show_default=False)
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a file that cannot be read completely.")] = False,
) -> None:
    """Push a transcript into a session as a listener would, with the times at which it was said.

    It reads subtitles (.vtt, .srt, .sbv, .ass, .ttml, YouTube's .json3), JSON of Deepgram, AssemblyAI, Speechmatics,
    Amazon Transcribe, Azure, Google, Gladia, Rev, ElevenLabs, Whisper and its descendants, and Fireflies; text, tables
    and Word documents of Whisper, Otter, Teams, Google Meet, Rev and Fireflies; chats of WhatsApp, Zoom, Slack, Matrix,
    Discord, Telegram, Teams, Signal and others, also as a .zip; logs of IRC; e-mail; proceedings of courts; files of
    ELAN, Praat and others; any list of turns in JSON; and JSON lines with "speaker", "text", and the time as "t_est"
    (seconds) or "timestamp" (ISO 8601). The file's suffix does not matter.

    What cannot be read is named on standard error, and the rest is pushed. Message numbers continue those of the
    session. Ctrl-C stops between two messages and prints how to continue from there.

    Examples:

        context-builder replay talk.vtt monday --started-at 2023-05-03T09:00

        context-builder replay interview.jsonl monday --speed 0
    """
    if as_now and started_at is not None:
        raise typer.BadParameter("--started-at and --as-now exclude each other")
    how = _How(speed, skip, channel, strict, as_now, started_at)
    run(_replay_file(file, session_id, how, None if started_at is None else _moment(started_at), live_console()))


@dataclass(frozen=True, slots=True)
class _How:
    """How a file is replayed, as the options say."""

    speed: float
    skip: int
    channel: str | None
    strict: bool
    as_now: bool
    started_at: str | None

    def again(self, file: Path, session_id: str, done: int) -> list[str]:
        """Return the command that goes on after so many messages."""
        command = ["context-builder", "replay", str(file), session_id, f"--speed={self.speed:g}", f"--skip={done}"]
        command += [f"--started-at={self.started_at}"] if self.started_at else []
        command += [f"--channel={self.channel}"] if self.channel else []
        return command + (["--as-now"] if self.as_now else [])


def _moment(text: str) -> datetime:
    try:
        return iso(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--started-at") from None


async def _replay_file(file: Path, session_id: str, how: _How, started: datetime | None, console: Console) -> None:
    transcript = read_transcript(file, channel=how.channel, strict=how.strict)
    if started is not None:
        transcript = _starting(transcript, started)
    utterances, skip = transcript.utterances, how.skip
    total, done = len(utterances), skip
    if skip >= total:
        raise typer.BadParameter(f"{file} has {total} messages only", param_hint="--skip")
    said_at = None if how.as_now else moments(transcript)
    _tell_what_was_read(transcript, dated=how.as_now or said_at is not None)
    stop = asyncio.Event()
    async with connected(session_id) as client:
        with progress(console, total) as show, stopping_signals(stop.set):

            def tell(pushed: int, _: int) -> None:
                nonlocal done
                done = skip + pushed
                show(done, total)

            try:
                await replay(
                    client,
                    utterances[skip:],
                    said_at=said_at and said_at[skip:],
                    speed=how.speed,
                    on_progress=tell,
                    stop=stop,
                )
            finally:
                console.print(f"{done} of {total} pushed to {session_id}", markup=False, highlight=False)
                if done < total:
                    typer.echo(f"To go on from there: {shlex.join(how.again(file, session_id, done))}", err=True)
    if done < total:
        raise typer.Exit(INTERRUPTED)


def _starting(transcript: Transcript, started: datetime) -> Transcript:
    """Return the transcript as beginning at a moment: a recording's beginning, or a chat's first message."""
    first = next((one.at for one in transcript.utterances if one.at is not None), 0.0)
    return replace(transcript, started=moment_after(started, -first if transcript.started else 0.0))


def _tell_what_was_read(transcript: Transcript, *, dated: bool) -> None:
    """Tell on standard error what could not be read, and what else there is to know of a file."""
    lines = [f"not read: {problem}" for problem in transcript.problems[:MOST_PROBLEMS]]
    if (more := len(transcript.problems) - MOST_PROBLEMS) > 0:
        lines.append(f"not read: {more} more")
    lines += transcript.notes
    if not dated:
        lines.append("the file has no dates, so it counts as said now (--started-at says when it began)")
    for line in lines:
        typer.echo(plain(line), err=True)


@contextmanager
def progress(console: Console, total: int) -> Iterator[OnProgress]:
    """Show a bar in a terminal; elsewhere a line at every tenth of the way."""
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (
        TextColumn("replaying"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("replaying", total=total)
        yield lambda done, _: bar.update(task, completed=done)


def _lines(console: Console) -> OnProgress:
    reported = 0

    def tell(done: int, total: int) -> None:
        nonlocal reported
        if (tenths := done * 10 // total) > reported:
            reported = tenths
            console.print(f"{done} of {total} messages pushed", highlight=False)

    return tell
