"""``doctor``: is everything as it should be, and what to do where it is not."""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from context_builder.cli.command import JsonFlag, print_json, run, settings_in_force
from context_builder.cli.view.palette import plain
from context_builder.cli.view.status import counted
from context_builder.errors import AnalystUnavailable, ContextBuilderError, StoreError
from context_builder.storage.redis_availability import translated

if TYPE_CHECKING:
    from context_builder.cli.repairs import Repair
    from context_builder.session.keys import Receiver
    from context_builder.wiring.app import App

SKEW: Final = 2.0
"""Seconds between this machine's clock and Redis' that are worth a word."""

PATIENCE: Final = 45.0
"""Seconds that one check may take."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found; ``advice`` says what to do, if anything, each in a line of its own."""

    check: str
    ok: bool
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """What a check found of something that answers; without ``ok`` it works, but not as it should."""

    found: str
    advice: str = ""
    ok: bool = True


def doctor(
    json: JsonFlag = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="First fix what can be fixed; ask before changing a server.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --fix: do not ask.")] = False,
) -> None:
    """Check everything from Redis to the clock, and say what to do about each problem. Exit status 1 if a check fails.

    With --fix, the command first fixes what it can: a missing .env, private files that others can read, missing
    migrations of the database, and a Redis that evicts keys, is not append-only, or does not send a fleet keyspace
    notifications of pushes. It prints what it did, and then runs the checks.

    Examples:

        context-builder doctor

        context-builder doctor --fix
    """
    if fix:
        _mend(yes=yes)
    run(_doctor(as_json=json))


def _mend(*, yes: bool) -> None:
    """Mend what can be mended; what fails, or is not wanted, is told and left."""
    for repair in run(_repairs()):
        if repair.asks and not yes and not (sys.stdin.isatty() and typer.confirm(f"{plain(repair.what)}. Fix it?")):
            typer.echo(f"left  {plain(repair.what)}" + ("" if sys.stdin.isatty() else "; --yes fixes it"), err=True)
            continue
        try:
            typer.echo(f"fixed {plain(repair.what)}: {plain(asyncio.run(repair.mend()))}", err=True)
        except ContextBuilderError as error:
            typer.echo(f"left  {plain(repair.what)}: {plain(error)}", err=True)


async def _repairs() -> list[Repair]:
    from context_builder import log
    from context_builder.cli.repairs import repairs

    settings = settings_in_force()
    log.configure("error", settings.process.log_format)
    return await repairs(settings)


async def _doctor(*, as_json: bool) -> None:
    from context_builder import log
    from context_builder.wiring.app import open_app

    settings = settings_in_force()
    log.configure("error", settings.process.log_format)
    first, *others = settings.of_each_server()
    async with open_app(first) as app:
        findings = with_model_tasks(await _examined(app, CHECKS), await _model_tasks(app))
        for one in others:
            async with app.beside(one) as another:
                findings += await _examined(another, OF_EACH_SERVER)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            _show(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check:<8} ", finding.found)
            for advice in finding.advice.splitlines():
                _show(f"{'':<15}→ ", advice)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _show(begin: str, text: str) -> None:
    """Print a line that begins so; in a terminal, what does not fit stands below its text."""
    line = begin + plain(text)
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        line = textwrap.fill(
            line, columns, subsequent_indent=" " * len(begin), break_long_words=False, break_on_hyphens=False
        )
    typer.echo(line)


async def _examined(app: App, names: Iterable[str]) -> list[CheckResult]:
    """Return what each check finds; of a Redis that gives no answer, the reason is told once."""
    findings: list[CheckResult] = []
    is_reached = True
    for name in names:
        if not is_reached and name in OF_EACH_SERVER:
            findings.append(CheckResult(name, ok=False, found="not checked: it needs Redis", advice=""))
            continue
        try:
            outcome = await asyncio.wait_for(CHECKS[name](app), PATIENCE)
            findings.append(CheckResult(name, ok=outcome.ok, found=outcome.found, advice=outcome.advice))
        except (TimeoutError, ContextBuilderError) as error:
            found = f"no answer within {PATIENCE:g} s" if isinstance(error, TimeoutError) else str(error)
            advice = "" if "; " in found else ADVICE[name]  # most errors say what to do, and know better
            findings.append(CheckResult(name, ok=False, found=found, advice=advice))
            is_reached = is_reached and name != "redis"
    return findings


async def _redis(app: App) -> CheckAnswer:
    from context_builder.engines.redis_launch import SETTINGS
    from context_builder.storage.redis import check_server, durability_of

    found = f"{app.redis_is.what}, version {await check_server(app.redis)}"
    durability = await durability_of(app.redis, SETTINGS if app.redis_is.embedded else None)
    return CheckAnswer(found, "\n".join((*durability.faults, *durability.notes)), ok=not durability.faults)


async def _pushes(app: App) -> CheckAnswer:
    from context_builder.session.arrivals import EVENTS_NEEDED, announces_pushes

    if await announces_pushes(app.redis):
        return CheckAnswer(f"{app.redis_is.what} announces them, so a fleet runs a new session at once")
    found = f"{app.redis_is.what} does not announce them, so a fleet finds a new session at its next DISCOVERY_SCAN"
    return CheckAnswer(found, f"redis-cli CONFIG SET notify-keyspace-events {EVENTS_NEEDED}")


async def _sessions(app: App) -> CheckAnswer:
    from context_builder.cli.sessions import concerns
    from context_builder.session.servers import SessionServer, SessionServers

    here = SessionServer(app.redis_is.what, app.redis, app.settings.memory.tenant_id)
    found = await SessionServers([here]).find_all()
    wrong = [*concerns(found)]
    return CheckAnswer(f"{len(found.sessions):,} in {app.redis_is.what}", "\n".join(wrong), ok=not wrong)


async def _model(app: App) -> CheckAnswer:
    from context_builder.analysis.analyst import AnalystMessage

    message = AnalystMessage(1, "Doctor", "How does DNA replication work in living cells?")
    started = time.perf_counter()
    result = await app.dependencies.analyst.extract_keywords([message])
    seconds = time.perf_counter() - started
    if result.analyst != app.dependencies.analyst.name:
        raise AnalystUnavailable(
            f"{app.model_is.what}: the model gave no answer, so {result.analyst} analysis stood in;"
            " the tasks below tell why"
        )
    found = f"found {counted(len(result.keywords[0]), 'keyword')} in {seconds:.2f} s"
    return CheckAnswer(f"{app.model_is.what}: {found}", app.model_is.hint)


async def _model_tasks(app: App) -> list[CheckResult]:
    """Try each task of each model; nothing where no model is configured."""
    from context_builder.cli.model_tasks import try_tasks

    return [CheckResult(one.task, one.ok, one.found, one.advice) for one in await try_tasks(app.settings, PATIENCE)]


def with_model_tasks(findings: Sequence[CheckResult], tasks: Sequence[CheckResult]) -> list[CheckResult]:
    """Return all of them, a model that fails at every task once: its reason takes the place of the failed check."""
    from context_builder.cli.model_tasks import EVERY_TASK

    silent = [one for one in tasks if one.check == EVERY_TASK]
    others = [one for one in tasks if one.check != EVERY_TASK]
    told: list[CheckResult] = []
    for one in findings:
        is_explained = one.check == EVERY_TASK and not one.ok
        told += (silent or [one]) if is_explained else [one]
        silent = [] if is_explained else silent
    return [*told, *silent, *others]


async def _archive(app: App) -> CheckAnswer:
    from context_builder.archive.supabase import SupabaseArchive
    from context_builder.database.migrations import migrations

    if (archive := app.dependencies.archive) is None:
        return CheckAnswer(app.archive_is.what, app.archive_is.hint)
    await archive.check()
    if isinstance(archive, SupabaseArchive):
        await archive.check_inserts()
    _, *numbered = migrations()
    applied = await archive.applied()
    lacking = [name for name in numbered if applied and name not in applied]
    if applied is not None and not applied:
        advice = "its migrations cannot be seen; `context-builder migrate` applies what it lacks"
    elif lacking:
        advice = f"it lacks {', '.join(lacking)}: run `context-builder migrate`"
    else:
        advice = app.archive_is.hint
    return CheckAnswer(
        f"{app.archive_is.what}; summaries can be stored", _both(advice, await _refused_by("archive", app))
    )


async def _memory(app: App) -> CheckAnswer:
    from context_builder.memory.memory import MemoryQuery

    memory = app.dependencies.memory
    if memory is None:
        return CheckAnswer(app.memory_is.what, app.memory_is.hint)
    await memory.search(MemoryQuery("doctor", limit=1))
    advice = _both(app.memory_is.hint, await _refused_by("memory", app))
    return CheckAnswer(f"{app.memory_is.what}; a search works", advice)


async def _embedder(app: App) -> CheckAnswer:
    from context_builder.memory.embedder import MOST_DIMENSIONS
    from context_builder.wiring.stores import WORDS_ALONE, embedder_of

    if app.dependencies.memory is None:
        return CheckAnswer("none: there is no memory to search")
    embedder = None if app.settings.somabrain.base_url else embedder_of(app.settings)
    if embedder is None:
        return CheckAnswer(
            "SomaBrain's own" if app.settings.somabrain.base_url else f"none: memories are {WORDS_ALONE}"
        )
    try:
        await embedder.embed_query("doctor")  # which starts an embedded engine, and makes connections
        started = time.perf_counter()
        dimensions = len(await embedder.embed_query("How does DNA replication work in living cells?"))
        took = (time.perf_counter() - started) * 1000
        found = f"{embedder.name}: a query in {took:.0f} ms, {dimensions:,} dimensions"
        if dimensions > MOST_DIMENSIONS:
            advice = f"no more than {MOST_DIMENSIONS:,} dimensions can be searched; set another EMBEDDING_MODEL"
            return CheckAnswer(found, f"memories are {WORDS_ALONE}: {advice}", ok=False)
        return CheckAnswer(found)
    finally:
        await embedder.close()


async def _refused_by(receiver: Receiver, app: App) -> str:
    """Return what to do about entries that archive or memory refused for good, naming the session with most."""
    from context_builder.session.keys import Keys
    from context_builder.session.store.registry import SessionRegistry

    try:
        sessions = await SessionRegistry(app.redis).sessions()
        names = [each.session_id for each in sessions if each.undeliverable[receiver]]
        async with translated(), app.redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.llen(Keys(name).dead_letters_of(receiver))
            refused: dict[str, int] = dict(zip(names, await pipe.execute(), strict=True))
    except StoreError:
        return ""  # which is another check's to say
    most = max(refused, key=refused.__getitem__, default="")
    if not most or not refused[most]:
        return ""
    count = sum(refused.values())
    were = "entry was" if count == 1 else "entries were"
    return f"{count} {were} refused for good: `context-builder dead {most}` says why"


def _both(advice: str, more: str) -> str:
    return "; ".join(filter(None, (advice, more)))


async def _clock(app: App) -> CheckAnswer:
    from context_builder.storage.redis import clock_skew

    skew = await clock_skew(app.redis)
    advice = "set both clocks by NTP: this machine's measures silence and ages" if abs(skew) > SKEW else ""
    return CheckAnswer(f"{abs(skew):.2f} s apart from Redis' clock", advice)


CHECKS: Final = {
    "redis": _redis,
    "pushes": _pushes,
    "sessions": _sessions,
    "model": _model,
    "archive": _archive,
    "memory": _memory,
    "embedder": _embedder,
    "clock": _clock,
}
OF_EACH_SERVER: Final = ("redis", "pushes", "sessions", "clock")
"""What is checked of each of REDIS_URLS."""

ADVICE: Final = {
    "redis": "check REDIS_URL, REDIS_URLS, or REDIS_HOST, REDIS_PORT and REDIS_PASSWORD",
    "pushes": "check REDIS_URL, REDIS_URLS, or REDIS_HOST, REDIS_PORT and REDIS_PASSWORD",
    "sessions": "check REDIS_URL, REDIS_URLS, or REDIS_HOST, REDIS_PORT and REDIS_PASSWORD",
    "model": "check OPENAI_API_KEY and OPENAI_BASE_URL, and the names of the models",
    "archive": "check SUPABASE_URL and SUPABASE_KEY, or DATABASE_URL; `context-builder migrate` makes the table",
    "memory": "`context-builder migrate` makes its tables; with SomaBrain, check SA01_SOMA_BASE_URL",
    "embedder": "check EMBEDDING_MODEL, EMBEDDING_BASE_URL and EMBEDDING_API_KEY, or `context-builder engines`; "
    "meanwhile memories are found by words alone",
    "clock": "check Redis",
}
