"""Backups: all sessions of Redis and all tables of the database go into one file, and out of it into empty engines.

A file's layout is in ``container``, a session's part in ``sessions``, a table's in ``tables``.
"""
