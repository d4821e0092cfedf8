"""Tokens of a text are counted exactly, counted with little memory, or estimated."""
