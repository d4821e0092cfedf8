"""``diff``: what two prompts, models or versions make of the same recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from context_builder.cli.command import print_json, run, settings_in_force
from context_builder.cli.view.differences import Side, show
from context_builder.errors import SettingError
from context_builder.recording.comparison import Comparison, compare
from context_builder.recording.recording import Recording
from context_builder.recording.understanding import Understanding, recorded, understood_by

MODEL_SETTINGS: Final = ("keyword_model", "domain_model", "summary_model")


@dataclass(frozen=True, slots=True)
class AnalystOptions:
    """Tells which analyst should read the recording, where it is not the settings' one."""

    model: str | None = None
    prompts: Path | None = None


def diff(
    file: Annotated[Path, typer.Argument(help="Recording that `record` wrote.", show_default=False)],
    other: Annotated[
        Path | None, typer.Argument(help="Another recording of the same messages.", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Model for all three tasks.")] = None,
    prompts: Annotated[
        Path | None, typer.Option("--prompts", help="Folder with other prompts.", file_okay=False, exists=True)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all differences as JSON, for programs.")] = False,
) -> None:
    """Compare a recording's results with another recording's, or with those of the present analyst.

    With one file, the analyst of the present settings repeats each recorded task once.

    A model that is not called at temperature 0 also differs from itself.

    Examples:

        context-builder diff monday.jsonl --model gpt-4.1-mini

        context-builder diff monday.jsonl --prompts ./prompts-v2

        context-builder diff monday.jsonl monday-again.jsonl
    """
    if other is not None and (model or prompts):
        raise typer.BadParameter("is for one recording, read again", param_hint="--model, --prompts")
    run(_diff(Recording(file), Recording(other) if other else None, AnalystOptions(model, prompts), as_json=as_json))


async def _diff(recording: Recording, other: Recording | None, options: AnalystOptions, *, as_json: bool) -> None:
    left, left_name = recorded(recording), recording.path.name
    if other is not None:
        right, right_name = recorded(other), other.path.name
    else:
        right, right_name = await _read_again(recording, options)
    comparison = compare(left, right)
    if as_json:
        print_json(document(comparison, left, right), _plain)
    else:
        show(comparison, Side.of(left_name, left), Side.of(right_name, right), Console())


async def _read_again(recording: Recording, options: AnalystOptions) -> tuple[Understanding, str]:
    from context_builder.wiring.app import open_analyst

    models = dict.fromkeys(MODEL_SETTINGS, options.model)
    settings = settings_in_force(**models, prompts_dir=options.prompts, llm_attempts=1)
    model = settings.model
    named = "--model" if options.model else "--prompts" if options.prompts else ""
    if named and not (model.openai_api_key or model.openai_base_url or model.local_model_url):
        raise SettingError(f"OPENAI_API_KEY: is missing, but {named} is for a language model")
    async with open_analyst(settings) as (analyst, described):
        with _progress() as on_progress:
            return await understood_by(analyst, recording, on_progress), described.what


def document(comparison: Comparison, left: Understanding, right: Understanding) -> dict[str, Any]:
    """Return the agreement by task, and everything that was compared."""
    return {
        "agreement": comparison.figures(),
        "analysts": {"left": left.analysts, "right": right.analysts},
        "failed": {"left": left.failed, "right": right.failed},
        "keywords": comparison.keywords,
        "domains": comparison.domains,
        "points": comparison.points,
    }


def _plain(value: Any) -> Sequence[Any]:
    """Return a point's citations, which have no order of their own."""
    return sorted(value, key=lambda message: (message.speaker, message.text, message.again))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error, where it is a terminal; else a line at every tenth of the way."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("asking"), BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("asking", total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)
    else:
        yield lambda done, total: _tell_tenths(console, done, total)


def _tell_tenths(console: Console, done: int, total: int) -> None:
    if done * 10 // total > (done - 1) * 10 // total:
        console.print(f"{done} of {total} asked", highlight=False)
