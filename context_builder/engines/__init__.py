"""Engines are servers that the project starts itself: Redis, PostgreSQL, and one for embeddings.

A home folder comes in, the address of a running server goes out. ``engine`` has the protocol.
"""
