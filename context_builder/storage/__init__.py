"""Stores share connections to Redis, error codes of PostgreSQL, HTTP clients, migrations and their SQL."""
