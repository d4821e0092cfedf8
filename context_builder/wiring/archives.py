"""Where summaries are archived, as the settings want it: Supabase, any PostgreSQL, or the embedded one."""

from __future__ import annotations

from context_builder.archive.archive import Archive, DeferredArchive
from context_builder.settings.settings import Settings
from context_builder.wiring.embedded import Described, database_url, home_of, require_postgres


def archive_of(settings: Settings) -> tuple[Archive, Described]:
    """Return the archive, not connected yet, and its name for people."""
    archive: Archive
    where = settings.archive
    if where.supabase_url and where.supabase_key:
        from context_builder.archive.supabase import SupabaseArchive

        archive = SupabaseArchive(where.supabase_url, where.supabase_key.get_secret_value())
        return archive, Described(archive.name)
    if where.database_url:
        from context_builder.archive.postgres import PostgresArchive

        archive = PostgresArchive(where.database_url.get_secret_value())
        return archive, Described(archive.name)
    require_postgres()
    home = home_of(settings)

    async def embedded() -> Archive:
        from context_builder.archive.postgres import PostgresArchive

        return PostgresArchive(await database_url(home))

    hint = "set SUPABASE_URL and SUPABASE_KEY, or DATABASE_URL, for your own"
    return DeferredArchive("the embedded PostgreSQL", embedded), Described(f"embedded PostgreSQL in {home}", hint)
