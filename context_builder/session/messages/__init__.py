"""A delivery is decoded to a message, and the buffer holds the newest messages.

Raw bytes come in, :class:`Message` and :class:`BufferedMessage` go out."""
