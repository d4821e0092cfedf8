"""The settings choose where knowledge is kept: the database that summaries are archived in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from context_builder.knowledge.store import KnowledgeStore
from context_builder.settings.settings import Settings
from context_builder.storage.sql_functions import PostgresFunctions, SqlFunctions, SupabaseFunctions
from context_builder.storage.store_errors import KNOWLEDGE_ERRORS
from context_builder.wiring.embedded import database_url, home_of, require_postgres


@asynccontextmanager
async def open_knowledge(settings: Settings) -> AsyncIterator[KnowledgeStore]:
    """Open the knowledge store; the embedded PostgreSQL is started where the settings name no database."""
    async with open_functions(settings) as functions:
        yield KnowledgeStore(functions)


@asynccontextmanager
async def open_functions(settings: Settings) -> AsyncIterator[SqlFunctions]:
    """Open the database's functions, which raise :class:`~context_builder.errors.KnowledgeError`."""
    where = settings.archive
    functions: SqlFunctions
    if where.supabase_url and where.supabase_key:
        functions = SupabaseFunctions(where.supabase_url, where.supabase_key.get_secret_value(), KNOWLEDGE_ERRORS)
    elif where.database_url:
        functions = PostgresFunctions(where.database_url.get_secret_value(), KNOWLEDGE_ERRORS)
    else:
        require_postgres()
        functions = PostgresFunctions(await database_url(home_of(settings)), KNOWLEDGE_ERRORS)
    try:
        yield functions
    finally:
        await functions.close()
