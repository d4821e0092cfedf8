"""What stands around every call, in this order: trace, failures, names of the server, credentials, size of the body."""
