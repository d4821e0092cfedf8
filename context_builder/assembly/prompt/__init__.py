"""From one turn or one build to the text of a prompt: what was asked, sections, history, and their layout.

A turn comes in, messages or a ``BuiltContext`` go out."""
