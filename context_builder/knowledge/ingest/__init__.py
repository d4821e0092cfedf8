"""A folder goes in, artifacts and the edges between them come out: what ``context-builder ingest`` stores."""
