"""The HTTP server shows health and metrics."""
