"""Analysts, archives and memories may fail in any way; this module distinguishes their failures from exits."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from context_builder.errors import ContextBuilderError

_EXIT: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


def raise_what_ends_the_task(error: BaseException) -> None:
    """Raise the interrupt or the cancellation that ``error`` is or comes from; everything else is a failure.

    A cancellation that nobody asked of this task comes from within what it called, and is a failure like others. An
    error that comes while the task is being cancelled is what was made of its cancellation.
    """
    if isinstance(error, _EXIT) or (isinstance(error, BaseExceptionGroup) and error.subgroup(_EXIT)):
        raise error
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


@contextmanager
def lone_failure_itself() -> Iterator[None]:
    """Raise the failure of a task group itself, in place of the group, when it is the only one."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


def reason_of(error: BaseException) -> str:
    """Return why something failed, without what it was about: errors of others may quote what people said."""
    if isinstance(error, ContextBuilderError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
