"""The page for browsers is served under ``/ui``: templates, kept current by server-sent events.

``views`` has a file for each view; a view is a router there, a template, and maybe a module of ``static``. Everything
people said is text: templates escape all that they are given, scripts set text alone.
"""
