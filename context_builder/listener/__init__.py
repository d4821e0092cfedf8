"""A listener for transcribers that speak JSON: from their messages to a session's queue.

Messages of a WebSocket, of relays that connect, or of lines come in; pushes go out.
"""
