"""``init``: four questions, and the answers in ``.env``."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote, urlsplit

import typer

from context_builder.cli.command import confirm, run
from context_builder.cli.view.palette import plain
from context_builder.errors import ContextBuilderError, SettingError

if TYPE_CHECKING:
    from context_builder.settings.settings import Settings

ENV: Final = Path(".env")
OURS: Final = "embedded"
"""Answer for the Redis and the database that come along."""

_PREFIX: Final = "CONTEXT_BUILDER_"
NONE: Final = "none"
OPENAI: Final = "openai"
PATIENCE: Final = 45.0
"""Seconds that one answer may take to be checked."""

Values = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class SetupQuestion:
    """One question: ``values`` turns an answer into settings, and ``check`` tries them."""

    name: str
    text: str
    default: str
    values: Callable[[str], Values]
    check: Callable[[Settings], Awaitable[str]]
    present: tuple[str, ...] = field(default=())
    """Settings that answer it where they are set already, and give way to a new answer."""


def init(
    redis: Annotated[str | None, typer.Option(help="embedded, or your Redis' URL.", show_default=False)] = None,
    database: Annotated[
        str | None,
        typer.Option(help="embedded, a postgresql:// URL, or a Supabase project's https:// URL.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="none, openai, or the URL of a server that speaks its API.", show_default=False),
    ] = None,
    recordings: Annotated[
        str | None, typer.Option(help="none, or a folder in which all sessions are recorded.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Change an existing .env without asking.")] = False,
) -> None:
    """Ask four questions, test each answer at once, and write the answers to .env.

    The questions are: which Redis, which database, which model, and whether sessions are recorded. Each default works
    with nothing installed or configured. Other lines of an existing .env stay. An option answers its question; without
    a terminal, no question is asked. Passwords and keys are not shown when typed; keys may also be in OPENAI_API_KEY
    and SUPABASE_KEY.

    Examples:

        context-builder init

        context-builder init --redis redis://cache:6379/0 --model openai --yes
    """
    if ENV.exists():
        confirm(f"{ENV} already exists. Change it? Other lines stay.", yes=yes)
    given = {"redis": redis, "database": database, "model": model, "recordings": recordings}
    held = run(_held())
    chosen: Values = {}
    for question in QUESTIONS:
        chosen |= _answered(question, given[question.name], held)
    run(_write(chosen))
    typer.echo(f"Wrote {ENV}; only you can read it. Next: context-builder doctor")


def _answered(question: SetupQuestion, given: str | None, held: Mapping[str, str]) -> Values:
    """Return the settings of an answer that works; a person is asked until there is one."""
    asks = given is None and sys.stdin.isatty()
    unchanged = given is None and any(name.removeprefix(_PREFIX) in question.present for name in held)
    if unchanged and not asks:
        return {}
    while True:
        default = "keep" if unchanged else question.default
        answer = typer.prompt(question.text, default=default) if asks else given or question.default
        if unchanged and answer == "keep":
            return {}
        answer = _with_password(answer) if asks else answer
        try:
            values = question.values(answer.strip())
            told = asyncio.run(_tried(question, {**_others(held), **values}))
        except ContextBuilderError as error:
            if not asks:
                run(_refused(question.name, error))
            typer.echo(f"  That does not work: {plain(error)}", err=True)
            continue
        typer.echo(f"  {plain(told)}")
        return {spelled: None for name in question.present for spelled in (name, _PREFIX + name)} | values


def _others(held: Mapping[str, str]) -> dict[str, str]:
    """Return what no question is about, of the environment, too: an answer is tried alone, whatever else is wrong."""
    asked = {name for question in QUESTIONS for name in question.present}
    both = {**held, **os.environ}
    return {name: value for name, value in both.items() if name.removeprefix(_PREFIX) not in asked}


async def _tried(question: SetupQuestion, values: Mapping[str, str | None]) -> str:
    from context_builder import log
    from context_builder.settings.settings import load_settings

    settings = load_settings({name: value for name, value in values.items() if value}, env_file=None)
    log.configure("error", settings.process.log_format)
    try:
        return await asyncio.wait_for(question.check(settings), PATIENCE)
    except TimeoutError:
        raise SettingError(f"no answer within {PATIENCE:g} s") from None


async def _refused(name: str, error: ContextBuilderError) -> None:
    raise SettingError(f"--{name}: {error}")


async def _write(values: Values) -> None:
    from context_builder.settings.env_file import write_values

    write_values(ENV, values)


async def _held() -> dict[str, str]:
    from context_builder.settings.env_file import read_values

    return {name: value for name, value in read_values(ENV).items() if value}


def _secret(name: str, what: str) -> str:
    """Return a secret from the environment, or from whoever is there, without showing it."""
    if value := os.environ.get(name):
        return value
    if not sys.stdin.isatty():
        raise SettingError(f"{name}: set it in the environment, because there is no terminal to ask on")
    return str(typer.prompt(f"  {what}", hide_input=True))


def _with_password(url: str) -> str:
    """Return a server's URL with the password that whoever is there gives, unseen, unless it has one."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") or parts.password is not None or not parts.hostname:
            return url
    except ValueError:
        return url  # which is told when it is tried
    asked = typer.prompt("  Its password, if it has one", default="", show_default=False, hide_input=True)
    user, host = parts.username or "", parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{user}:{quote(asked, safe='')}@{host}").geturl() if asked else url


def _redis(answer: str) -> Values:
    return {} if answer == OURS else {"REDIS_URL": answer}


def _database(answer: str) -> Values:
    if answer == OURS:
        return {}
    if answer.startswith(("http://", "https://")):
        return {
            "SUPABASE_URL": answer,
            "SUPABASE_KEY": _secret("SUPABASE_KEY", "Its secret key (sb_secret_…), or service-role key"),
        }
    return {"DATABASE_URL": answer}


def _model(answer: str) -> Values:
    if answer == NONE:
        return {}
    key = _secret("OPENAI_API_KEY", "Its API key") if answer == OPENAI or sys.stdin.isatty() else None
    return {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": None if answer == OPENAI else answer}


def _recordings(answer: str) -> Values:
    if answer == NONE:
        return {}
    try:
        return {"RECORD_DIR": str(Path(answer).expanduser())}
    except RuntimeError:
        raise SettingError("there is no user of this name") from None


async def _try_redis(settings: Settings) -> str:
    from context_builder.storage.redis import check_server
    from context_builder.wiring.servers import open_redis

    async with open_redis(settings) as redis:
        return f"It answers, version {await check_server(redis)}."


async def _try_database(settings: Settings) -> str:
    from context_builder.database.postgres import connected
    from context_builder.wiring.database import owners_url
    from context_builder.wiring.embedded import has_postgres
    from context_builder.wiring.stores import open_stores

    if settings.archive.supabase_url is not None and settings.archive.database_url is None:
        async with open_stores(settings) as stores:
            if stores.archive is not None:
                await stores.archive.check()
            return f"{stores.archive_is.what}; summaries can be stored."
    if settings.archive.database_url is None and not has_postgres():
        return "None: summaries stay in Redis, and nothing is remembered beyond a session."
    async with connected(await owners_url(settings)):
        return "It answers. `context-builder migrate` makes its tables; the embedded one has them by itself."


async def _try_model(settings: Settings) -> str:
    from context_builder.analysis.analyst import AnalystMessage
    from context_builder.errors import AnalystUnavailable
    from context_builder.wiring.analysts import open_analyst

    async with open_analyst(settings) as (analyst, described):
        result = await analyst.extract_keywords([AnalystMessage(1, "Init", "How does DNA replication work?")])
        if result.analyst != analyst.name:
            raise AnalystUnavailable(f"{described.what}: no answer")
        return f"{described.what}: it answers."


async def _try_recordings(settings: Settings) -> str:
    folder = settings.process.record_dir
    return await asyncio.to_thread(_prepared, folder) if folder else "Sessions are not recorded."


def _prepared(folder: Path) -> str:
    import tempfile

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return f"Sessions are recorded in {folder}, what people say included."
    except OSError as error:
        raise SettingError(f"{folder}: {error.strerror}") from None


QUESTIONS: Final = (
    SetupQuestion(
        "redis",
        "1/4 Redis: its URL, or",
        OURS,
        _redis,
        _try_redis,
        ("REDIS_URL", "REDIS_URLS", "REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD"),
    ),
    SetupQuestion(
        "database",
        "2/4 Database for archive, memory and packages: postgresql://…, Supabase's https://…, or",
        OURS,
        _database,
        _try_database,
        ("DATABASE_URL", "SUPABASE_URL", "SUPABASE_KEY"),
    ),
    SetupQuestion(
        "model",
        "3/4 Model: openai, the URL of a server that speaks its API, or, for plain text analysis,",
        NONE,
        _model,
        _try_model,
        ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ),
    SetupQuestion(
        "recordings",
        "4/4 Record all that people say: a folder, or",
        NONE,
        _recordings,
        _try_recordings,
        ("RECORD_DIR",),
    ),
)
