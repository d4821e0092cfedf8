"""The retrieval asks sources side by side under one deadline, and keeps track of their health.

A query comes in, candidates go out. A new source is a file here and implements ``Source`` (source)."""
