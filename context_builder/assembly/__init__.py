"""The read side: from a turn and all that is remembered to messages that fit the token budget."""
