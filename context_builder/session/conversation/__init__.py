"""A conversation's state changes with each message, without I/O and without a clock of its own.

Messages, answers of analysts and the time come in; tasks for analysts, changes to write and the published state go
out. The session uses ``Conversation``; recordings replay it."""
