"""`edgeflare conform --device NAME/all`: a run on each kernel set of a device, and two tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import typer

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.kernel_set_matrix import run_kernel_sets, stopping_said, try_kernel_sets
from edgeflare.cli.matrix_options import matrix_path, of_kernel_set
from edgeflare.cli.progress import say
from edgeflare.cli.quiet import result
from edgeflare.cli.requested_conformance import (
    RequestedConformance,
    requested_header,
    run_requested_conformance,
    try_conformance,
)
from edgeflare.conform.record.conform_document import ConformDocument, read_conformance
from edgeflare.conform.record.conform_journal import require_same_run
from edgeflare.devices.profile import Profile
from edgeflare.matrix.conform_matrix import conform_matrix
from edgeflare.matrix.conform_matrix_document import conform_matrix_document
from edgeflare.matrix.conform_matrix_table import conform_matrix_section
from edgeflare.matrix.kernel_set_runs import RunStopped
from edgeflare.matrix.matrix_document import write_matrix
from edgeflare.matrix.matrix_folder import claimed_matrix
from edgeflare.pages.terminal import print_section
from edgeflare.run.run_directory import CONFORM_DOCUMENT, RunDirectory
from edgeflare.trust import Trust


def conform_kernel_sets(
    asked: RequestedConformance, device: str, trust: Trust, *, dry_run: bool, as_json: bool
) -> int:
    """Run it on each kernel set of a device, and return the exit code.

    Args:
        asked: the run; its time is that of each kernel set.
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        dry_run: only say what would be done.
        as_json: print the document, and no table.

    Raises:
        UserError: it cannot be done as it was asked for.
        InfrastructureError: a device, a process or a disk failed.

    """
    out = matrix_path(asked.folder, "conform")
    if dry_run:
        try_kernel_sets(device, trust, out, lambda one, path: try_conformance(asked, one, path))
        return 0

    def conform_on(profile: Profile, path: Path) -> ConformDocument:
        if asked.folder.resume and (ended := _ended(asked, profile, path)) is not None:
            return ended
        own = replace(asked, folder=of_kernel_set(asked.folder, path))
        done = run_requested_conformance(own, profile, path, resumed_at=out)
        if done.interrupted_by is not None:
            raise RunStopped
        return done

    folder = asked.folder
    with claimed_matrix(out, resume=folder.resume, overwrite=folder.overwrite):
        try:
            with stopping_said(out):
                runs = run_kernel_sets(device, trust, out, conform_on, overwrite=folder.overwrite)
        except RunStopped:
            return INTERRUPTED
        matrix = conform_matrix(runs)
        document, shown = conform_matrix_document(matrix), conform_matrix_section(matrix)
        write_matrix(document, shown, out)
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(document), indent=1))
    else:
        print_section(Console(), shown)
        first = next(one.profile.kernels for one in runs if one.result is not None)
        say(Console(), f"Each kernel set has a run of its own, such as {out / first}")
    result(out)
    return int(any(row.new for row in matrix.rows))


def _ended(asked: RequestedConformance, profile: Profile, path: Path) -> ConformDocument | None:
    """Return the document of the same run if it has ended: what it shrank would be lost else.

    Raises:
        UserError: it is a run of a device or a host that may answer otherwise.

    """
    directory = RunDirectory(path)
    if not (path / CONFORM_DOCUMENT).exists():
        return None
    document = read_conformance(directory)
    if document.request != asked.request or document.interrupted_by is not None:
        return None
    require_same_run(path, requested_header(asked, profile))
    return document
