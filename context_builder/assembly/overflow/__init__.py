"""What no longer fits the history is summarized in the background, and kept for the next turn.

Trimmed messages come in, a summary of them goes out."""
