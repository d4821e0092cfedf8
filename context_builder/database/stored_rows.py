"""Rows are read as this project writes them; one into which somebody else wrote is named, and left as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError

from context_builder.errors import DataRejected, RowDamaged
from context_builder.json_shape import Misshapen

log = structlog.get_logger(__name__)

T = TypeVar("T")


@contextmanager
def reading_row(table: str, row: str) -> Iterator[None]:
    """Raise :class:`RowDamaged`, which names table and row, in place of errors of what this project did not write."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, DataRejected) as error:
        raise damaged_row(table, row, error) from None


def damaged_row(table: str, row: str, error: Exception) -> RowDamaged:
    """Return what says which row is damaged, and what to do; it quotes nothing that is stored."""
    return RowDamaged(
        f"row {row} of {table} is damaged ({_told(error)}); it is left as it is. Correct it, or restore a backup"
    )


def readable_rows(
    table: str, key: str, decode: Callable[[Mapping[str, Any]], T], rows: Iterable[Mapping[str, Any]]
) -> Iterator[T]:
    """Yield what the rows hold; those that are damaged are left out, and the log names them by the column ``key``."""
    for row in rows:
        try:
            with reading_row(table, str(row.get(key))):
                decoded = decode(row)
        except RowDamaged as error:
            log.warning("database.row_damaged", reason=str(error))
            continue
        yield decoded


def _told(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] != "extra_forbidden" and first["loc"]:  # else the name is of what is stored
            return f"{first['loc'][0]}: {first['type']}"
    return str(error) if isinstance(error, Misshapen) else type(error).__name__  # others quote what is stored
