"""`edgeflare export`: a finding as one file, for somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli import run_options
from edgeflare.cli.console import unless_damaged
from edgeflare.cli.option_values import complete_run
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.search_options import refuse_options_of_searches
from edgeflare.diagnose.explain_document import load_explanations
from edgeflare.errors import UserError, kind_at_named_path
from edgeflare.models.pair_interface import PairInterface
from edgeflare.pages.facts import count_of
from edgeflare.record.folder import file_written, require_suffix, written
from edgeflare.replay.past_run import PastRun, finding_number
from edgeflare.replay.reproduction_archive import SCRIPT, require_scriptable
from edgeflare.replay.reproduction_archive import export as write_reproduction
from edgeflare.run.run_directory import RunDirectory, holds_conformance
from edgeflare.untrusted_text import printable

Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A run directory.", autocompletion=complete_run),
]
Finding = Annotated[
    str,
    typer.Argument(
        metavar="FINDING",
        help="Its seed's id, or its number of a conformance run, as reports show it; or its file.",
    ),
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Default: RUN/finding-FINDING.zip.")]
NoModels = Annotated[
    bool, typer.Option("--no-models", help="Leave the models out: their sha256 is in it.")
]
IncludeWeights = Annotated[
    bool,
    typer.Option(
        "--include-weights",
        help="Of a conformance run with --from: pack parts of your model where a finding shows with"
        " these alone.",
    ),
]


def export(
    context: typer.Context,
    run: Run,
    finding: Finding,
    out: Out = None,
    no_models: NoModels = False,
    include_weights: IncludeWeights = False,
    versions: run_options.Versions = None,
    original: run_options.Original = None,
    compressed: run_options.Compressed = None,
    function: run_options.Functions = None,
    _quiet: Quiet = False,
) -> None:
    """Write a finding as a zip that shows the deviation with nothing but numpy and a runtime.

    Both models, the input as it was stored and as the models take it, all that is known of where it
    ran, and a short script: what a vendor's bug tracker asks for. After `edgeflare explain`, also
    the operator in which it begins, as a model of its own with its inputs and what the host made
    of them. It lists what it packs. Of a conformance run it packs the smallest model of the
    operator, what it is given, what each kernel set answers, what is right, and bug_report.md, for
    a bug tracker to paste.

    Exit codes: 0 written; 2 the command has to be corrected; 3 a disk failed.
    """
    if out is not None:
        require_suffix("--out", out, ".zip")
    directory = RunDirectory(run)
    if holds_conformance(directory):
        moved = {"--original": original, "--compressed": compressed, "--function": function}
        refuse_options_of_searches({"--no-models": no_models, **moved}, run)
        context.with_resource(_writable(directory, out))
        _export_operator(directory, finding, out, versions, with_weights=include_weights)
        return
    if include_weights or versions is not None:
        name = "--include-weights" if include_weights else "--versions"
        raise UserError(
            f"{name} is for what a conformance run found, and {run} is a search or a survey:"
            " leave it out"
        )
    if run.is_dir():
        context.with_resource(_writable(directory, out))
    past = PastRun.open(run)
    seed_id = finding_number(finding, {entry.seed_id: entry.file for entry in past.deviations})
    if seed_id is None:
        raise UserError(f"{finding} is no finding: name it by its seed's id, or by its file")
    require_scriptable(PairInterface.of(past.header.pair))
    path = out or run / f"finding-{seed_id}.zip"
    pair = past.pair(original, compressed, functions=function or ())
    fingerprint = past.header.pair.fingerprint
    explanations = unless_damaged(lambda: load_explanations(past.directory, fingerprint))
    with _writing(path):
        made = write_reproduction(
            past, pair, seed_id, path, explanations, with_models=not no_models
        )
    _list(path, made.files)
    if made.operator is not None:
        typer.echo(printable(f"operator.tflite is {made.operator}: {made.operator.what}"))
    typer.echo(f"{count_of(len(made.files), 'file')}; unpack it, and type: python {SCRIPT}")


def _writable(directory: RunDirectory, out: Path | None) -> AbstractContextManager[None]:
    """Return what keeps other processes from writing the folder that the zip is put into.

    Raises:
        UserError: another process works on it.

    """
    return written(directory.path) if out is None else file_written(out)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say in a line why an archive cannot be written."""
    try:
        yield
    except OSError as error:
        kind = kind_at_named_path(error)
        raise kind(f"cannot write {path}: {error.strerror}") from None


def _export_operator(
    directory: RunDirectory,
    finding: str,
    out: Path | None,
    versions: str | None,
    *,
    with_weights: bool,
) -> None:
    """Write a finding of a conformance run."""
    from edgeflare.conform.finding_archive import (  # noqa: PLC0415 - loads a room
        export_finding,
        numbered,
    )
    from edgeflare.conform.record.conform_document import read_conformance  # noqa: PLC0415
    from edgeflare.conform.record.finding_files import stored_model  # noqa: PLC0415

    document = read_conformance(directory)
    files = {found.number: found.smallest.file for found in document.findings}
    number = finding_number(finding, files)
    if number is None:
        raise UserError(f"{finding} is no finding: name it by its number, as reports show it")
    path = out or directory.path / f"finding-{number}.zip"
    with _writing(path):
        since = None
        if versions is not None:
            from edgeflare.cli.version_launch import installed, tried_on  # noqa: PLC0415

            stored = stored_model(directory, numbered(directory, document, number))
            since = tried_on([stored], installed(versions), document.device.kernels)
        packed = export_finding(
            directory, document, number, path, with_weights=with_weights, versions=since
        )
    _list(path, packed)
    typer.echo(f"{count_of(len(packed), 'file')}; unpack it, and type: python {SCRIPT}")


def _list(path: Path, files: Mapping[str, bytes]) -> None:
    typer.echo(path)
    for name, content in sorted(files.items()):
        typer.echo(f"  {len(content):>11,} bytes  {name}")
    result(path)
