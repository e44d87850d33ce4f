"""`edgeflare report`: show what a run found, and write it down for others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.completion import complete_run
from edgeflare.cli.console import Console
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.warning import unless_damaged
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.report.csv_table import csv_table
from edgeflare.report.junit_xml import junit_xml
from edgeflare.report.markdown_summary import summary
from edgeflare.report.run_terminal import print_run
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory, write_atomically
from edgeflare.run.run_document import RunDocument, to_json

Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A run directory.", autocompletion=complete_run),
]
Html = Annotated[
    bool, typer.Option("--html", help="Write RUN/report.html, one file to look at and pass on.")
]
JUnit = Annotated[bool, typer.Option("--junit", help="Write RUN/junit.xml, a test case each seed.")]
Csv = Annotated[bool, typer.Option("--csv", help="Write RUN/findings.csv, an entry each row.")]
Summary = Annotated[
    bool, typer.Option("--summary", help="Write RUN/summary.md, for the page of a CI job.")
]

AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print what run.json holds; of a run that was cut off, from its journal."
    ),
]


def report(
    run: Run,
    html: Html = False,
    junit: JUnit = False,
    csv: Csv = False,
    with_summary: Summary = False,
    as_json: AsJson = False,
    _quiet: Quiet = False,
) -> None:
    """Show what a run found, also one that was cut off before its end.

    With a switch, files are written instead. `--html` needs the extra `report`. `--json` prints the
    document itself.

    Exit codes: 0 shown or written, whatever deviates; 2 the command has to be corrected; 3 a disk
    failed.
    """
    directory = RunDirectory(run)
    document = load_document(directory)
    wanted: dict[str, bytes] = {}
    if html:
        wanted["report.html"] = _page(document, directory)
    if junit:
        wanted["junit.xml"] = junit_xml(document)
    if csv:
        wanted["findings.csv"] = csv_table(document).encode()
    if with_summary:
        wanted["summary.md"] = summary(document).encode()
    if as_json:
        if wanted:
            raise UserError("--json prints, and the other switches write files: give --json alone")
        typer.echo(json.dumps(to_json(document), indent=1))
    elif not wanted:
        print_run(Console(), document, str(run))
    for name, data in wanted.items():
        _write(run / name, data)


def _page(document: RunDocument, directory: RunDirectory) -> bytes:
    try:
        from edgeflare.report.html.explanation_view import load_explanations  # noqa: PLC0415
        from edgeflare.report.html.page import render_page  # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise UserError(
            f"--html needs {error.name}, which is not installed: pip install 'edgeflare[report]'"
        ) from None
    explanations = unless_damaged(lambda: load_explanations(directory, document)) or {}
    return render_page(document, directory, explanations).encode()


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror}") from None
    typer.echo(path)
    result(path)
