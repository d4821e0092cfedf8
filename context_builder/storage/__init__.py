"""Connections to Redis and over HTTP: what bounds and shares them, and what their errors mean."""
