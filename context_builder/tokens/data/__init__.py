"""Data files that ship with the package; each is described in ``README.md`` beside it."""
