"""The live view of a session: published state in, something to look at out; no I/O."""
