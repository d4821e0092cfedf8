"""The HTTP routes are defined here, one file for each kind of resource."""
