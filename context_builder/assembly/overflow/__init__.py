"""Messages that no longer fit the history are summarized in the background, and kept for later turns.

Trimmed messages come in, a summary of them goes out."""
