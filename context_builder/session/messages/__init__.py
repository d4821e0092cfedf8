"""A delivery read as a message, and the buffer of the newest ones.

Raw bytes come in, :class:`Message` and :class:`BufferedMessage` go out."""
