"""The argument that most commands take first."""

from __future__ import annotations

from typing import Annotated

import typer

SESSION_ID = Annotated[str, typer.Argument(help="Name of the conversation: 1 to 128 of A-Z a-z 0-9 . _ -")]
