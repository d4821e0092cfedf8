"""The calls, a file for each kind of resource."""
