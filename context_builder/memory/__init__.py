"""What is remembered for good: stored in batches, searched by meaning and by words, kept apart by tenant."""
