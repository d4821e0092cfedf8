"""``demo``: everything in about a minute, on a conversation that comes along."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from context_builder import log
from context_builder.cli.command import live_console, run, settings_in_force
from context_builder.cli.replay import replay
from context_builder.cli.signals import stopped, stopping_signals
from context_builder.cli.view.palette import SpeakerColours, domain_colour, plain, short_name
from context_builder.cli.view.published import Published
from context_builder.cli.view.status import SILENCE, counted
from context_builder.cli.view.summary import SummaryView
from context_builder.cli.watch import INTERVAL, follow
from context_builder.demo import load_demo, load_demo_document
from context_builder.errors import ContextBuilderError
from context_builder.session.client import SessionClient, Snapshot

if TYPE_CHECKING:
    from context_builder.knowledge.package import ContextPackage
    from context_builder.session.session import Session
    from context_builder.settings.settings import Settings


SPEED: Final = 8.0
"""Times faster than people speak: eight minutes in one."""

WINDOW: Final = 12.0
"""Seconds after which what was said is summarized, so that a minute has several summaries."""

SETTLING: Final = 20.0
"""Most seconds that the last words wait for their summary."""


class DemoSighting:
    """What the demo has shown so far."""

    def __init__(self, session_id: str) -> None:
        self.latest = Snapshot(session_id)
        self.domains: dict[str, float] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Note a snapshot's highest confidence of each domain, in order of appearance."""
        self.latest = snapshot
        for domain, confidence in Published(snapshot).domains:
            self.domains[domain] = max(confidence, self.domains.get(domain, 0.0))

    @property
    def summarized(self) -> bool:
        """Return whether all messages are in the summary."""
        page = Published(self.latest)
        return page.known and not (page.messages or page.waiting or page.count("pending_messages"))


def demo(
    speed: Annotated[float, typer.Option(min=0.1, help="Speed relative to natural speech.")] = SPEED,
    page: Annotated[
        bool, typer.Option("--page", help="Serve the page too, and print an address that opens in a browser.")
    ] = False,
) -> None:
    """See everything in about a minute: five researchers talk, and the session listens.

    The command replays a bundled conversation into a real, new session and shows it live. At the end, it builds a
    context package for an agent's task. Nothing needs to be installed or configured. Ctrl-C ends it.

    Examples:

        context-builder demo

        context-builder demo --speed 4

        context-builder demo --page
    """
    run(_demo_with_page(speed) if page else _demo(speed, live_console()), interrupted=0)


async def _demo_with_page(speed: float) -> None:
    """Play the demo for whoever looks at the page, and serve that until Ctrl-C."""
    from context_builder.cli.serve import page_address
    from context_builder.engines.engine import free_port
    from context_builder.errors import require_extra

    for module in ("fastapi", "uvicorn", "cedarpy", "jinja2"):
        require_extra("server", module, "demo --page")
    from context_builder.server.app import create_app
    from context_builder.server.page.app import logins_of
    from context_builder.server.serving import serve_app
    from context_builder.wiring.app import open_app
    from context_builder.wiring.server import open_services

    port = free_port()
    settings = settings_in_force(raw_buffer_time_window=WINDOW, serve_port=port, serve_host="127.0.0.1")
    log.configure("error", settings.process.log_format)
    stop = asyncio.Event()
    with stopping_signals(stop.set):
        async with open_app(settings) as app, open_services(settings) as opened, asyncio.TaskGroup() as tasks:
            session = app.session(f"demo-{secrets.token_hex(3)}")
            code = await logins_of(opened.services).new_code() if sys.stdout.isatty() else None
            where = page_address(f"http://127.0.0.1:{port}", code)
            tasks.create_task(
                _played(session, SessionClient(app.redis, session.session_id), stop, speed), name="demo.play"
            )
            await serve_app(
                create_app(opened.services),
                settings.server.host,
                port,
                stop=stop,
                stopping=opened.services.stopping,
                started=lambda: typer.echo(f"{session.session_id} is talking: {where} · Ctrl-C stops"),
            )


async def _played(session: Session, client: SessionClient, stop: asyncio.Event, speed: float) -> None:
    """Replay the conversation into the session, and end it when all is summarized."""
    async with _served(session):
        await replay(client, load_demo(), speed=speed, stop=stop)
        seen = DemoSighting(client.session_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLING):
                while not (seen.summarized or await stopped(stop, INTERVAL)):
                    seen.look(await client.snapshot())


async def _demo(speed: float, console: Console) -> None:
    from context_builder.wiring.app import open_app

    settings = settings_in_force(raw_buffer_time_window=WINDOW)
    log.configure("error", settings.process.log_format)  # anything less would be written across the view
    async with open_app(settings) as app:
        session = app.session(f"demo-{secrets.token_hex(3)}")
        async with _served(session) as stop:
            client = SessionClient(app.redis, session.session_id)
            seen = await play(
                client, stop=stop, console=console, speed=speed, silence_threshold=settings.session.silence
            )
        seen.look(await client.snapshot())
        if (view := await _package(settings, session.session_id)) is not None:
            console.print(view)
        console.print(closing(seen, app.archive_is.what if app.dependencies.archive is not None else "Redis"))


async def _package(settings: Settings, session_id: str) -> RenderableType | None:
    """Return a package of context for people; None without what packages need."""
    if not all(map(find_spec, ("cedarpy", "ulid"))):
        return None
    try:
        return package_view(await demo_package(settings, session_id))
    except ContextBuilderError as error:
        return Text(f"No package of context could be built: {plain(error)}", style="yellow")


@asynccontextmanager
async def _served(session: Session) -> AsyncIterator[asyncio.Event]:
    """Run the session inside, then end it: all summarized and archived.

    The event is set when the session ends by itself.
    """
    ended = asyncio.Event()
    serving = asyncio.create_task(session.serve(), name="demo.session")
    serving.add_done_callback(lambda _: ended.set())
    try:
        yield ended
    except BaseException:  # Ctrl-C, too: the session writes down what it has
        session.stop()
        raise
    else:
        session.end()
    finally:
        await serving


async def play(
    client: SessionClient,
    *,
    stop: asyncio.Event,
    console: Console,
    speed: float = SPEED,
    silence_threshold: float = SILENCE,
) -> DemoSighting:
    """Replay the bundled conversation into a running session, show it live, and return what was seen.

    Ends when all of it is summarized, or soon after the last word; ``stop`` ends it early, and
    is set when it is over. Without a terminal it prints a line when something changes.
    """
    seen = DemoSighting(client.session_id)
    if console.is_terminal:
        showing = follow(client, console, stop=stop, silence_threshold=silence_threshold, on_snapshot=seen.look)
    else:
        showing = _tell(client, console, seen, stop)
    view = asyncio.create_task(showing, name="demo.view")
    view.add_done_callback(lambda _: stop.set())
    try:
        await replay(client, load_demo(), speed=speed, stop=stop)
        await _settle(seen, stop)
    finally:
        stop.set()
        await view
    return seen


async def _settle(seen: DemoSighting, stop: asyncio.Event) -> None:
    """Wait until the last words are summarized, at most ``SETTLING`` seconds, or for ``stop``.

    The view looks at the session meanwhile, and lets ``seen`` know; without a view, :func:`_played` looks itself.
    """
    end = asyncio.get_running_loop().time() + SETTLING
    while not seen.summarized and asyncio.get_running_loop().time() < end:
        if await stopped(stop, INTERVAL):
            return


async def _tell(client: SessionClient, console: Console, seen: DemoSighting, stop: asyncio.Event) -> None:
    """Write plain lines for a log: one when the domains change or a summary is made."""
    shown = None
    while not await stopped(stop, INTERVAL):
        seen.look(await client.snapshot())
        page = Published(seen.latest)
        if (news := ([domain for domain, _ in page.domains], page.summaries)) != shown:
            shown = news
            domains = ", ".join(f"{short_name(domain)} {confidence:.0%}" for domain, confidence in page.domains)
            console.print(
                f"{counted(page.received, 'message')}, {counted(page.summaries, 'summary')}, "
                f"about: {domains or 'not known yet'}",
                highlight=False,
                markup=False,
                soft_wrap=True,  # a log's line is as long as what it tells
            )


def closing(seen: DemoSighting, stored: str) -> RenderableType:
    """Return lines about what happened, where it is kept, and what to try next."""
    from context_builder.analysis.text.analyst import NAME as TEXT_ANALYST

    page = Published(seen.latest)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    facts.add_row("messages", f"{page.received} heard, {page.summarized} summarized in {len(page.points)} points")
    facts.add_row("summaries", f"{page.summaries}, kept in {stored}")
    facts.add_row("domains", _domains(seen))
    made_by = ", ".join(sorted(set(page.analysts().values()))) or "–"
    facts.add_row("made by", "plain text analysis" if made_by == TEXT_ANALYST else made_by)
    commands = Table.grid(padding=(0, 2))
    commands.add_column(style="bold", no_wrap=True)
    commands.add_column(style="dim")
    for command, purpose in (
        *activation(),
        (f"context-builder state {page.session_id}", "this session, as it is stored"),
        (f"context-builder build {page.session_id} -q permit", "a prompt: what is known of permits"),
        (f"context-builder forget {page.session_id}", "delete it, also from the memory that all sessions share"),
        ("context-builder run monday", "a session of your own"),
        ('context-builder send monday "Hello" -s Alice', "say something in it, from a second terminal"),
        ("context-builder watch monday", "look at it like this"),
        ("context-builder doctor", "what to set for OpenAI and Supabase"),
    ):
        commands.add_row(Text(command), purpose)
    heading = Text("That was the demo.", style="bold")
    points = SummaryView(page.points[-6:], SpeakerColours())
    return Padding(Group(heading, Text(), facts, Text(), points, Text(), Text("Next:"), commands), (1, 2))


def activation() -> list[tuple[str, str]]:
    """Return what puts these commands on a shell's path, with its purpose, where they run in an environment that the
    shell has not activated."""
    if sys.prefix == sys.base_prefix or "VIRTUAL_ENV" in os.environ:
        return []
    script = Path(sys.prefix) / "bin" / "activate"
    with suppress(ValueError):
        script = script.relative_to(Path.cwd())
    return [(f". {shlex.quote(str(script))}", "first, in each terminal")]


def _domains(seen: DemoSighting) -> Text:
    return Text(", ").join(Text(short_name(domain), style=domain_colour(domain)) for domain in seen.domains)


PROJECT: Final = "demo"
REF: Final = "artifact:demo/permits"
INTENT: Final = "What is needed before an acoustic beacon may be mounted in the cove?"
BUDGET: Final = 600


async def demo_package(settings: Settings, session_id: str) -> ContextPackage:
    """Store the document, and return a package of it and of the session."""
    from context_builder.knowledge.artifact import Artifact, ArtifactKind, Status
    from context_builder.knowledge.request import ContextBuildRequest, Scope
    from context_builder.server.access.caller import local_caller
    from context_builder.tracing import TraceContext
    from context_builder.wiring.knowledge import open_knowledge, open_package_service

    tenant_id = settings.memory.tenant_id
    text = load_demo_document()
    title = text.partition("\n")[0].removeprefix("# ")
    document = Artifact(
        kind=ArtifactKind.DOCUMENT, title=title, content=text, project_id=PROJECT, status=Status.APPROVED
    )
    async with open_knowledge(settings) as knowledge:
        await knowledge.store.put(tenant_id, REF, document)
    scope = Scope(project_id=PROJECT, session_ids=(session_id,))
    request = ContextBuildRequest(intent=INTENT, token_budget=BUDGET, scope=scope)
    async with open_package_service(settings, tenant_id, INTENT) as service:
        return await service.build(local_caller(tenant_id).agent, request, TraceContext.new())


def package_view(package: ContextPackage) -> RenderableType:
    """Return the package for people: what it is for, its sources, and how to read all of it."""
    from context_builder.cli.view.package import package_table

    return Padding(
        Group(
            Text("A package of context, for an agent", style="bold"),
            Text(f"its task: {INTENT}", style="dim"),
            Text(),
            package_table(package),
            Text(f"context-builder package show {package.context_package_id} --prompt", style="bold"),
        ),
        (1, 2, 0, 2),
    )
