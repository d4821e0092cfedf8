"""``python -m context_builder SESSION_ID`` runs a session; any command may be given instead."""

import sys

from context_builder.cli import COMMANDS, main

if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and sys.argv[1] not in COMMANDS:
    sys.argv.insert(1, "run")
main()
