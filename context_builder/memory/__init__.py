"""The long-term memory is stored in batches, searched by meaning and by words, and kept apart by tenant."""
