"""How much each candidate is worth to a turn, and which of them say the same. Pure.

Candidates come in, scored and without repetitions they go out."""
