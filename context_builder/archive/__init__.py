"""The archive keeps every summary for good. In come summary rows, once or again; out go their numbers.

``archive`` has the protocol, ``postgres`` and ``supabase`` its adapters.
"""
