"""``listen``: what a transcriber says while people talk, pushed into a session."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from context_builder.cli.command import run, session_ids, settings_for
from context_builder.cli.signals import stopping_signals
from context_builder.cli.view.palette import plain
from context_builder.errors import ContextBuilderError, SettingError
from context_builder.session.client import SessionClient

if TYPE_CHECKING:
    from context_builder.listener import Feed

MOST_REASONS: Final = 20
"""Different reasons why messages were skipped that are told one by one."""


def listen(
    session_id: Annotated[
        str, typer.Argument(help="Session that receives the messages.", show_default=False, autocompletion=session_ids)
    ],
    source: Annotated[
        str | None, typer.Option("--from", help="WebSocket to read from, as ws://HOST:PORT/PATH.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Serve a WebSocket on this machine for relays; 0: any port."),
    ] = None,
) -> None:
    """Push a transcriber's live output into a session while people talk.

    The command reads live messages of Deepgram, AssemblyAI, Speechmatics, Google, Amazon, Azure, Whisper servers and
    others, of bots and agents, events of chats, plain objects with "text" and "speaker", and lines such as "Ida: …":
    from a WebSocket (--from), from relays that connect to this machine (--port), or from standard input, one message
    per line. It pushes only final text, each once, with its speaker if the transcriber tells speakers apart. It
    reconnects when a connection ends, and skips messages that it cannot read, with the reason. Ctrl-C stops it.

    With --from, the setting LISTEN_AUTHORIZATION is sent as the header Authorization.

    Examples:

        context-builder listen monday --from ws://localhost:9090

        context-builder listen monday --port 8650

        my-transcriber --json | context-builder listen monday
    """
    if source is not None and port is not None:
        raise typer.BadParameter("--from and --port exclude each other")
    if source is None and port is None and sys.stdin.isatty():
        raise typer.BadParameter("one of --from, --port and messages on standard input is needed")
    run(_listen(session_id, source, port))


async def _listen(session_id: str, source: str | None, port: int | None) -> None:
    from context_builder import log
    from context_builder.listener import Feed
    from context_builder.wiring.servers import open_redis
    from context_builder.wiring.tracing import sending_spans

    settings = await settings_for(session_id)
    log.configure("error", settings.process.log_format)  # what is waited for is said below
    authorization = settings.listener.authorization
    async with sending_spans(settings, "listen"), open_redis(settings) as redis:
        report = _Report(session_id)
        feed = Feed(SessionClient(redis, session_id), report.skipped, report.away)
        secret = authorization.get_secret_value() if authorization else None
        task = asyncio.create_task(_follow(feed, source, secret, port), name="listen")
        try:
            with stopping_signals(task.cancel), suppress(asyncio.CancelledError):
                await task
        finally:
            if not isinstance(sys.exception(), SettingError):  # else nothing was listened to
                report.end(feed)
    if feed.waiting:
        raise typer.Exit(1)


async def _follow(feed: Feed, source: str | None, authorization: str | None, port: int | None) -> None:
    from context_builder import listener
    from context_builder.transcript.live_speech import LiveSpeech

    refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def follow(messages: AsyncIterator[str | bytes]) -> None:
        try:
            await feed.follow(messages, LiveSpeech())
        except ContextBuilderError as error:
            if not refused.done():
                refused.set_exception(error)

    if source is not None:
        speech = LiveSpeech()  # one for all connections: what comes again after a new one is known
        await listener.from_websocket(source, authorization, lambda messages: feed.follow(messages, speech), _say)
    elif port is not None:
        async with listener.relays(port, follow, _say) as bound:
            _say(f"relays may connect to ws://{listener.LOOPBACK}:{bound}; Ctrl-C stops")
            await refused
    else:
        await feed.follow(listener.from_lines(), LiveSpeech())


def _say(line: str) -> None:
    typer.echo(plain(line), err=True)


class _Report:
    """Prints what happens to standard error, each reason once."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._reasons: set[str] = set()

    def skipped(self, reason: str) -> None:
        if reason not in self._reasons and len(self._reasons) < MOST_REASONS:
            self._reasons.add(reason)
            _say(f"skipped a message: {reason}")

    def away(self) -> None:
        _say("Redis does not answer; waiting for it")

    def end(self, feed: Feed) -> None:
        skipped = f", {feed.skipped} could not be read" if feed.skipped else ""
        waiting = f", {feed.waiting} not pushed: Redis does not answer" if feed.waiting else ""
        typer.echo(f"{feed.pushed} pushed to {self._session_id}{skipped}{waiting}", err=True)
