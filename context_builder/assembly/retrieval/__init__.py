"""What is found for a turn: sources asked side by side under one deadline, and whether each of them is well.

A query comes in, candidates go out. A new source is a file here and implements ``Source`` (source)."""
