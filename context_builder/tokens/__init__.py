"""How many tokens a text has: counted exactly, counted with little memory, or estimated."""
