"""Which parts fit a token budget, exactly counted, and the receipt that says why.

Candidates with tokens and scores come in; the choice, clipped texts and a :class:`Receipt` go out."""
