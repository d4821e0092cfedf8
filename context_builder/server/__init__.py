"""What is served over HTTP: health and metrics."""
