"""From settings to concrete parts: nobody else knows which class an analyst, an archive, a memory or an engine is.

Settings come in; the app, analysts, archives, memories and builders go out. What is
imported within a function takes time or an extra, and not every process needs it.
"""
