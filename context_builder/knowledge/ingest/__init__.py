"""``context-builder ingest`` turns a folder's files into artifacts and edges between them."""
