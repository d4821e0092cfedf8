"""The sources of a package: what is connected, alike, of certain fields, or pinned. Each offers candidates."""
