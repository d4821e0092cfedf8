"""The ranking deduplicates candidates and scores their worth to a turn. Pure.

Candidates come in, scored and without repetitions they go out."""
