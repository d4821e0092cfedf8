"""Tokens of a text are counted exactly, or estimated."""
