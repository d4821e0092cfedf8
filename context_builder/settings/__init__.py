"""The only reader of the environment: every setting, its type, its default and what it means."""
