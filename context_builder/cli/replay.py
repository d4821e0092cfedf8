"""``replay``: a recorded conversation, pushed as if people spoke now."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from context_builder.cli.command import INTERRUPTED, connected, live_console, run
from context_builder.cli.completion import session_ids
from context_builder.cli.signals import stopped, stopping_signals
from context_builder.session.client import JsonObject, SessionClient, contributed, spoken
from context_builder.transcript import Utterance, read_transcript

BATCH: Final = 500
"""Most messages in one push."""

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


async def replay(
    client: SessionClient,
    utterances: Sequence[Utterance],
    *,
    speed: float = 1.0,
    on_progress: OnProgress | None = None,
    stop: asyncio.Event | None = None,
) -> int:
    """Push the utterances as a listener would, and return how many were pushed.

    They keep their distances in time divided by ``speed``; with 0 they go as fast as Redis
    takes them. Numbers go on from the session's. ``stop`` or cancellation end it between two
    pushes. Raises :class:`StoreUnavailable` when Redis is gone.
    """
    stop = stop or asyncio.Event()
    due = [seconds / speed if speed else 0.0 for seconds in schedule(utterances)]
    number = await client.next_number()
    clock = asyncio.get_running_loop().time
    start, pushed = clock(), 0
    while pushed < len(utterances) and not await stopped(stop, start + due[pushed] - clock()):
        elapsed = clock() - start
        batch: list[JsonObject] = []
        for utterance, seconds in zip(utterances[pushed : pushed + BATCH], due[pushed : pushed + BATCH], strict=True):
            if seconds > elapsed:
                break
            batch.append(_message(client.session_id, number, utterance))
            number += utterance.contribution is None
        await client.push(*batch)
        pushed += len(batch)
        if on_progress:
            on_progress(pushed, len(utterances))
    return pushed


def _message(session_id: str, number: int, utterance: Utterance) -> JsonObject:
    now = datetime.now()
    if utterance.contribution is None:
        return spoken(session_id, number, utterance.speaker, utterance.text, now)
    return contributed(utterance.text, now, utterance.contribution)


def replay_command(
    file: Annotated[
        Path,
        typer.Argument(help="Transcript: .jsonl, .vtt, .srt, .json, or a Slack export folder.", show_default=False),
    ],
    session_id: Annotated[
        str, typer.Argument(help="Session that receives the messages.", show_default=False, autocompletion=session_ids)
    ],
    speed: Annotated[float, typer.Option(min=0, help="Speed relative to the original; 0: all at once.")] = 1.0,
    skip: Annotated[int, typer.Option(min=0, help="Messages to skip at the beginning of the file.")] = 0,
) -> None:
    """Push a transcript into a session as a listener would.

    JSON lines have "speaker" and "text", and the time as "t_est" (seconds) or "timestamp" (ISO 8601); WebVTT and
    SubRip are read with their speakers. A .json file is a transcript by Deepgram, AssemblyAI or Whisper, or an export
    from Matrix or Slack; a Slack channel may also be a folder. Message numbers continue those of the session. Ctrl-C
    stops between two messages and prints how to continue from there.

    Examples:

        context-builder replay meeting.vtt monday --speed 10

        context-builder replay interview.jsonl monday --speed 0
    """
    run(_replay_file(file, session_id, speed, skip, live_console()))


async def _replay_file(file: Path, session_id: str, speed: float, skip: int, console: Console) -> None:
    utterances = read_transcript(file)
    total, done = len(utterances), skip
    if skip >= total:
        raise typer.BadParameter(f"{file} has {total} messages only", param_hint="--skip")
    stop = asyncio.Event()
    async with connected(session_id) as client:
        with progress(console, total) as show, stopping_signals(stop.set):

            def tell(pushed: int, _: int) -> None:
                nonlocal done
                done = skip + pushed
                show(done, total)

            try:
                await replay(client, utterances[skip:], speed=speed, on_progress=tell, stop=stop)
            finally:
                console.print(f"{done} of {total} pushed to {session_id}", markup=False, highlight=False)
                if done < total:
                    again = ["context-builder", "replay", str(file), session_id, f"--speed={speed:g}", f"--skip={done}"]
                    typer.echo(f"To go on from there: {shlex.join(again)}", err=True)
    if done < total:
        raise typer.Exit(INTERRUPTED)


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
