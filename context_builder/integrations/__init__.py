"""Adapters for other frameworks, one file each, over the public API; the rest of the package imports none of them.

A framework's events and messages come in; pushes to a session, and messages for a prompt, go out. Each file needs the
extra that is named as it is.
"""

from context_builder.log import leave_to_logging

leave_to_logging()
