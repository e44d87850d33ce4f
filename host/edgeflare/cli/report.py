"""`edgeflare report`: show what a run found or a repair did, and write it for others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from edgeflare.cli.console import Console, unless_damaged
from edgeflare.cli.option_values import complete_run
from edgeflare.cli.presentation import Reported, extra_needed, page_bytes
from edgeflare.cli.quiet import Quiet, result
from edgeflare.diagnose.layers.layers_document import LAYERS, load_layers
from edgeflare.diagnose.layers.layers_page import layers_csv, layers_page
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.pages.junit import job_annotations
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import written
from edgeflare.record.json_types import plain_json
from edgeflare.report.run_csv import run_csv
from edgeflare.report.run_page import print_run, run_page
from edgeflare.report.run_suite import run_suite
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import (
    CHECK_DOCUMENT,
    SURVEY_DOCUMENT,
    RunDirectory,
    holds_conformance,
    holds_repair,
)
from edgeflare.run.run_document import RunDocument, to_json

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The folder of a check, or a run directory: of a search, a replay, a survey, a"
        " conformance run, a layer table or a repair.",
        autocompletion=complete_run,
    ),
]
Html = Annotated[
    bool,
    typer.Option(
        "--html",
        help="Write RUN/report.html, one file to look at and pass on; of a check check.html, of a"
        " repair repair.html, of a survey survey.html, of a conformance run conform.html.",
    ),
]
JUnit = Annotated[
    bool,
    typer.Option(
        "--junit",
        help="Write RUN/junit.xml, a test case each seed; of a check each gate, of a survey each"
        " gate and condition, of a conformance run each operator and type.",
    ),
]
Csv = Annotated[
    bool,
    typer.Option(
        "--csv",
        help="Write RUN/findings.csv, an entry each row; of a survey survey.csv, its rates; of a"
        " layer table layers.csv; of a check gates.csv.",
    ),
]
Summary = Annotated[
    bool, typer.Option("--summary", help="Write RUN/summary.md, for the page of a CI job.")
]
Accepted = Annotated[
    bool,
    typer.Option(
        "--accepted",
        help="Of a conformance run: write RUN/accepted.toml, its findings as `edgeflare conform"
        " --accepted` takes them. Copy it before you edit it.",
    ),
]
Annotations = Annotated[
    bool,
    typer.Option(
        "--annotations",
        help="Print the cases that fail, as --junit has them, as GitHub shows them beside a job.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print what run.json holds, of a run that was cut off from its journal; of a check"
        " what check.json holds, of a repair repair.json, of a survey survey.json, of a conformance"
        " run conform.json, of a layer table layers.json.",
    ),
]


_TO_WATCH: Final = frozenset({"--html"})
"""Switches of files that may be written while another command works on the run.

A page is looked at and made again. JUnit, CSV and the summary are taken for the result by programs
that cannot see that it is half of one.
"""


def report(
    context: typer.Context,
    run: Run,
    html: Html = False,
    junit: JUnit = False,
    csv: Csv = False,
    with_summary: Summary = False,
    accepted: Accepted = False,
    with_annotations: Annotations = False,
    as_json: AsJson = False,
    _quiet: Quiet = False,
) -> None:
    """Show what a check or a run came to, also one that was cut off, and write it for others.

    With a switch, files are written instead. `--html` needs the extra `report`. `--json` prints the
    document itself. While another command works on the run, it shows what there is so far, and
    `--html` alone writes its page: other files are of a run that nobody works on.

    Exit codes: 0 shown or written, whatever deviates; 2 the command has to be corrected; 3 a disk
    failed.
    """
    switches = {
        "--html": html,
        "--junit": junit,
        "--csv": csv,
        "--summary": with_summary,
        "--accepted": accepted,
    }
    chosen = [name for name, given in switches.items() if given]
    prints = [
        name for name, given in (("--json", as_json), ("--annotations", with_annotations)) if given
    ]
    if prints and len(prints) + len(chosen) > 1:
        alone = f"give {prints[0]} alone"
        raise UserError(f"{prints[0]} prints, and the other switches write files: {alone}")
    if not _TO_WATCH.issuperset(chosen) and run.is_dir():
        context.with_resource(written(run))
    reported = _reported(RunDirectory(run))
    for name in chosen:
        reported.require(name, run)
    if as_json:
        typer.echo(json.dumps(reported.document(), indent=1))
    elif with_annotations:
        for line in job_annotations(reported.cases(run)):
            typer.echo(line)
    elif not chosen:
        reported.show(Console())
    wanted = {file: make() for file, make in (reported.writes[name] for name in chosen)}
    for file, data in wanted.items():
        path = run / file
        try:
            write_atomically(path, data)
        except OSError as error:
            raise InfrastructureError(f"cannot write {path}: {error.strerror}") from None
        typer.echo(path)
        result(path)


SURVEYED = "survey"
"""The strategy in the document of a run by which a survey is known that was cut off."""


def _reported(directory: RunDirectory) -> Reported:
    if (directory.path / SURVEY_DOCUMENT).is_file():
        return _survey(directory)
    if holds_repair(directory):
        from edgeflare.cli.repair_presentation import reported_repair  # noqa: PLC0415 - as below

        return reported_repair(directory)
    if (directory.path / CHECK_DOCUMENT).is_file():
        from edgeflare.cli.check_presentation import reported_check  # noqa: PLC0415 - as above

        return reported_check(directory)
    if (directory.path / LAYERS).is_file():
        return _layers(directory)
    if holds_conformance(directory):
        from edgeflare.cli.conformance_presentation import reported_conformance  # noqa: PLC0415

        return reported_conformance(directory)
    document = load_document(directory)
    return _survey(directory) if document.strategy == SURVEYED else _run(directory, document)


def _survey(directory: RunDirectory) -> Reported:
    from edgeflare.cli.survey_presentation import reported_survey  # noqa: PLC0415 - loads all of a room

    return reported_survey(directory)


def _layers(directory: RunDirectory) -> Reported:
    document = load_layers(directory.inside(LAYERS))
    page = layers_page(document)
    return Reported(
        lambda: plain_json(document),
        lambda console: print_page(console, page, str(directory.path)),
        {
            "--html": ("layers.html", lambda: page_bytes(page)),
            "--csv": ("layers.csv", lambda: layers_csv(document).encode()),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
        },
        "a layer table",
    )


def _run(directory: RunDirectory, document: RunDocument) -> Reported:
    return Reported(
        lambda: to_json(document),
        lambda console: print_run(console, document, str(directory.path)),
        {
            "--html": ("report.html", lambda: _page(document, directory)),
            "--csv": ("findings.csv", lambda: run_csv(document).encode()),
            "--summary": ("summary.md", lambda: markdown_page(run_page(document)).encode()),
        },
        "a search or a replay",
        lambda: run_suite(document),
    )


def _page(document: RunDocument, directory: RunDirectory) -> bytes:
    with extra_needed():
        from edgeflare.report.html.explanation_view import load_explanation_views  # noqa: PLC0415
        from edgeflare.report.html.inspection_view import load_inspection_view  # noqa: PLC0415
        from edgeflare.report.html.run_html import run_html  # noqa: PLC0415 - needs an extra
    explanations = unless_damaged(lambda: load_explanation_views(directory, document)) or {}
    inspection = unless_damaged(lambda: load_inspection_view(directory))
    return run_html(document, directory, explanations, inspection).encode()
