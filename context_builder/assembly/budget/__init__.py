"""The budget allocates tokens, exactly counted, to sections of a prompt, and writes receipts.

Candidates with tokens and scores come in; the choice, clipped texts and a :class:`Receipt` go out."""
