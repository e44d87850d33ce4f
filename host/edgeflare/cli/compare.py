"""`edgeflare compare`: runs side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from edgeflare.cli.console import Console
from edgeflare.cli.option_values import complete_run
from edgeflare.errors import UserError, kind_at_named_path
from edgeflare.pages.facts import count_of, number
from edgeflare.pages.page import Bullets, Table
from edgeflare.pages.terminal import print_blocks
from edgeflare.record.folder import file_written, require_suffix
from edgeflare.record.json_types import plain_json
from edgeflare.replay.run_comparison import ComparedRun
from edgeflare.replay.run_comparison import compare as set_side_by_side
from edgeflare.report.entry_words import last_parts, with_article
from edgeflare.report.nearness_figure import draw_nearness
from edgeflare.report.run_figures import harms_in_words
from edgeflare.run.load_document import load_document
from edgeflare.run.nearness import measure_name
from edgeflare.run.run_directory import CHECK_DOCUMENT, RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.record.survey_plan import STRATEGY

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN RUN...", help="Run directories.", autocompletion=complete_run),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print everything as JSON, stored inputs by sha256.")
]

Figure = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw into an .svg file the share of the seeds that have a deviating input within a "
        "distance, a curve for each run.",
    ),
]


def compare(runs: Runs, as_json: AsJson = False, figure: Figure = None) -> None:
    """Set runs side by side: devices, quantizations, runtimes, strategies; searches or replays.

    Of checks it shows the verdicts and the gates, and what got better or worse from the first to
    the last, such as from one release to the next.

    Shared are the stored inputs that deviate in every run, as replays of one run do; searches find
    inputs of their own, so for them the seeds say more.
    """
    if figure is not None:
        require_suffix("--figure", figure, ".svg")
    checks = [run for run in runs if (run / CHECK_DOCUMENT).is_file()]
    if checks:
        _compare_checks(checks, runs, as_json=as_json, figure=figure)
        return
    documents = {str(run): load_document(RunDirectory(run)) for run in runs}
    _require_no_survey(documents)
    comparison = set_side_by_side(documents)
    if figure is not None:
        _draw(documents, figure)
    if as_json:
        typer.echo(json.dumps(comparison.to_json(), indent=1))
        return
    console = Console()
    measures = dict.fromkeys(
        with_article(measure_name(document)) for document in documents.values()
    )
    measure = " or ".join(measures)
    rows = [(name.format(measure=measure), *map(tell, comparison.columns)) for name, tell in _ROWS]
    said = [row for row in rows if any(row[1:])]  # not all tasks tell kinds apart
    header = ("", *(column.run for column in comparison.columns))
    print_blocks(console, Table.of_words(header, said))
    shared = len(comparison.shared_inputs)
    console.print(f"{count_of(shared, 'stored input')} deviate{'s' * (shared == 1)} in every run")
    if comparison.shared_seeds:
        seeds = len(comparison.shared_seeds)
        how = "1 seed deviates, or leads" if seeds == 1 else f"{seeds:,} seeds deviate, or lead"
        console.print(f"{how} to it, in every run")


def _draw(documents: Mapping[str, RunDocument], figure: Path) -> None:
    """Draw the curves of the runs into a file that the user has named."""
    try:
        with file_written(figure):
            draw_nearness(documents, figure)
    except OSError as error:
        kind = kind_at_named_path(error)
        raise kind(f"--figure {figure} cannot be written: {error.strerror}") from None


def _compare_checks(
    checks: list[Path], runs: list[Path], *, as_json: bool, figure: Path | None
) -> None:
    """Print checks side by side, and what got better or worse from the first to the last."""
    other = next((run for run in runs if run not in checks), None)
    if other is not None:
        raise UserError(f"{checks[0]} is a check, and {other} is none: compare checks with checks")
    if figure is not None:
        raise UserError("--figure draws searches, and these are checks: leave it away")
    if len(set(checks)) < _TWO:
        raise UserError("one check has nothing to be compared with: name another one")
    from edgeflare.release.check_comparison import (  # noqa: PLC0415 - loads all of a room
        changes_in_words,
        comparison_table,
        gate_changes,
    )
    from edgeflare.release.check_document import load_check  # noqa: PLC0415

    documents = {str(run): load_check(run / CHECK_DOCUMENT) for run in checks}
    if as_json:
        first, last = documents[str(checks[0])], documents[str(checks[-1])]
        said = {
            "checks": {
                name: {
                    "verdict": document.verdict,
                    "sentence": document.sentence,
                    "gates": document.gates,
                }
                for name, document in documents.items()
            },
            "changes": list(gate_changes(first, last)),
        }
        typer.echo(json.dumps(plain_json(said), indent=1))
        return
    print_blocks(Console(), comparison_table(documents), Bullets(changes_in_words(documents)))


_TWO: Final = 2


def _require_no_survey(documents: Mapping[str, RunDocument]) -> None:
    """Refuse surveys, whose findings are a choice and say nothing of how often there are any."""
    for run, document in documents.items():
        if document.strategy == STRATEGY:
            raise UserError(
                f"{run} is a survey: to compare two, run `edgeflare survey` of the later build with"
                f" --baseline {run}; its rates are shown by `edgeflare report {run}`"
            )


_ROWS: tuple[tuple[str, Callable[[ComparedRun], str]], ...] = (
    ("devices", lambda run: ", ".join(run.devices)),
    ("compressed model", lambda run: last_parts(run.compressed)),
    ("strategy, find", lambda run: f"{run.strategy}, {run.find}"),
    ("seeds", lambda run: f"{run.seeds}, of which {run.deviating_seeds} deviate"),
    ("findings", lambda run: f"{run.findings} ({run.success_rate:.1%})"),
    ("causes", lambda run: ", ".join(f"{n} {cause}" for cause, n in run.causes.items()) or "–"),
    ("kinds", lambda run: ", ".join(f"{n} {kind}" for kind, n in run.kinds.items())),
    ("who is right", lambda run: harms_in_words(run.harm) or "–"),
    ("mean queries", lambda run: number(run.mean_queries, 1)),
    ("mean device queries", lambda run: number(run.mean_device_queries, 1)),
    ("median strength", lambda run: number(run.median_strength, 4)),
    ("median L2", lambda run: number(run.median_l2, 0)),
    ("seeds within {measure}, dB", lambda run: _nearness(run) or "–"),
    ("area under that curve", lambda run: number(run.area, 3)),
    ("inputs of this run alone", lambda run: str(run.unique)),
)


def _nearness(column: ComparedRun) -> str:
    return ", ".join(f"{level}: {share:.1%}" for level, share in column.nearness.items())
