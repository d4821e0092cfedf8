"""The retrieval sources of a package: graph, semantic search, metadata, pinned sources. Each yields candidates."""
