"""The fault campaign: the real daemon, Redis and PostgreSQL, and everything that can go wrong between them."""
