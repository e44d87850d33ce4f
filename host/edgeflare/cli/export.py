"""`edgeflare export`: a finding as one file, for somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli import moved
from edgeflare.cli.warning import unless_damaged
from edgeflare.diagnose.document import load_explanations
from edgeflare.errors import InfrastructureError
from edgeflare.replay.past_run import PastRun
from edgeflare.replay.reproduction import SCRIPT
from edgeflare.replay.reproduction import export as write_reproduction

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
Finding = Annotated[
    int, typer.Argument(metavar="FINDING", help="The seed that it came from, as reports show it.")
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Default: RUN/finding-FINDING.zip.")]
NoModels = Annotated[
    bool, typer.Option("--no-models", help="Leave the models out: their sha256 is in it.")
]


def export(
    run: Run,
    finding: Finding,
    out: Out = None,
    no_models: NoModels = False,
    original: moved.Original = None,
    compressed: moved.Compressed = None,
) -> None:
    """Write a finding as a zip that shows the deviation with nothing but numpy and a runtime.

    Both models, the input as an image and as the models take it, all that is known of where it
    ran, and a short script: what a vendor's bug tracker asks for. After `edgeflare explain`, also
    the operator in which it begins, as a model of its own with its inputs.

    Exit codes: 0 written; 2 the command has to be mended; 3 a disk failed.
    """
    path = out or run / f"finding-{finding}.zip"
    past = PastRun.open(run)
    pair = past.pair(original, compressed)
    explanations = unless_damaged(
        lambda: load_explanations(past.directory, past.about.pair["fingerprint"])
    )
    try:
        files = write_reproduction(
            past, pair, finding, path, explanations, with_models=not no_models
        )
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror}") from None
    typer.echo(path)
    typer.echo(f"{len(files)} files; unpack it, and type: python {SCRIPT}")
