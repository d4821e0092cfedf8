"""This is the program's entry point: ``context-builder COMMAND``, and ``python -m context_builder ID`` for ``run``."""

import os
import signal
import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly, also while it is still being loaded, and while it is ending."""
    answers = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if the shell had it ignored
    try:
        if answers:
            # Nothing is open yet, and what is raised within an import can get lost. A container's first process has no
            # default that ends it.
            signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        from context_builder.cli import COMMANDS, app, load

        first = sys.argv[1] if len(sys.argv) > 1 else "-"
        if __name__ == "__main__" and not first.startswith("-") and first not in COMMANDS:
            sys.argv.insert(1, first := "run")
        if first in COMMANDS:
            load(first)  # here, because typer would take an interrupt for a failure
        if answers:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        app(prog_name="context-builder")
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as error:  # which Python 3.11 makes of an interrupt while a class is being made
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.exit(130)
    finally:
        # The interpreter still waits for threads, such as one that starts an engine: one more Ctrl-C ends that, too.
        if answers:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
