"""Messages that transcribers send while people talk, one service a module, and the table by which they are found."""
