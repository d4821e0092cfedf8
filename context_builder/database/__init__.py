"""The one database of archive, memory and knowledge. In come SQL functions and statements, out go rows, or our errors.

``database`` has the protocol, ``postgres`` and ``supabase`` the two ways in, ``sql`` the tables and functions that
``migrations`` makes.
"""
