"""Middleware wraps every call, in this order: trace, failures, server names, credentials, size of the body."""
