"""`edgeflare replay` of a conformance run: the models of its findings, tried again on a device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import typer
from rich.markup import escape

from edgeflare.cli.console import Console
from edgeflare.cli.kernel_set_matrix import kernel_set_runner
from edgeflare.cli.quiet import result
from edgeflare.cli.run_options import RunFolder, is_matrix, refuse_as_target
from edgeflare.cli.version_launch import installed, tried_on, write_versions
from edgeflare.conform.conformance_arms import open_conformance
from edgeflare.conform.finding_replay import RetriedFinding, replay_findings, stored_models
from edgeflare.conform.presentation.conform_terminal import RetryLine, print_retry
from edgeflare.conform.record.conform_document import ConformDocument, read_conformance
from edgeflare.conform.record.finding_files import StoredModel
from edgeflare.conform.version_table import failing_still, has_kernels
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles, find_run_profiles
from edgeflare.errors import UserError
from edgeflare.matrix.conform_matrix import (
    retry_matrix,
    retry_matrix_document,
    retry_matrix_section,
)
from edgeflare.matrix.kernel_set_runs import KernelSetRun
from edgeflare.matrix.matrix_document import write_matrix
from edgeflare.matrix.matrix_folder import check_matrix_folder
from edgeflare.pages.facts import count_of, in_words
from edgeflare.pages.terminal import print_section
from edgeflare.progress import say
from edgeflare.record.folder import new_folder
from edgeflare.run.run_directory import RunDirectory
from edgeflare.trust import Trust
from edgeflare.untrusted_text import printable


def replay_conformance(
    directory: RunDirectory,
    device: Sequence[str] | None,
    trust: Trust,
    out: Path | None,
    *,
    overwrite: bool,
) -> int:
    """Try the findings of a conformance run again, print what became of them, keep what fails.

    Args:
        directory: directory of the run.
        device: the one to try them on; None for the run's own, if that is a shipped emulated one.
        trust: the user's decision on its profile.
        out: where to write what fails; None for a new folder in runs/.
        overwrite: replace the run that is there.

    Returns:
        The exit code: 1 if one fails that counts.

    Raises:
        UserError: the run cannot be read or found nothing, or there is no such device.

    """
    document = read_conformance(directory)
    models = stored_models(directory, document)
    matrix = device is not None and is_matrix(device)
    profiles = [] if matrix else [_profile(device, document.device.name, trust)]
    path = out or new_folder(f"replay-{directory.path.resolve().name}")
    refuse_as_target(path, "what is replayed", directory.path)

    def retried(profile: Profile, path: Path) -> list[RetriedFinding]:
        return _retried(document, models, profile, path, overwrite=overwrite)

    if device is not None and matrix:
        check_matrix_folder(path, resume=False, overwrite=overwrite)
        runner = kernel_set_runner(device[0], trust, path, RunFolder(overwrite=overwrite))
        runs = runner.run(retried, lambda runs: _written(runs, path)) or []
        print_section(Console(), retry_matrix_section(retry_matrix(runs)))
        for run in runs:
            if run.refused:
                say(Console(), f"{run.profile.kernels}: {run.refused}")
        found = [finding for run in runs for finding in run.result or ()]
    else:
        found = retried(profiles[0], path)
        print_retry(Console(), profiles[0].name, list(map(_line, found)))
    typer.echo(f"What fails is kept in {path}")
    result(path)
    return int(any(again.counts for again in found))


def replay_on_versions(
    directory: RunDirectory, versions: str, out: Path | None, *, overwrite: bool
) -> int:
    """Try the findings of a conformance run on released versions of the runtime; print a table.

    Args:
        directory: directory of the run.
        versions: as the option has them.
        out: where to write the table; None for a new folder in runs/.
        overwrite: replace what is there.

    Returns:
        The exit code: 1 if one that counts fails on the last version, on a kernel set that it
        blames, or was found on kernels that the versions do not have.

    Raises:
        UserError: the run cannot be read or found nothing, or no version can be installed.
        InfrastructureError: pip fails, or a process or a disk.

    """
    document = read_conformance(directory)
    models = stored_models(directory, document)
    path = out or Path("runs") / f"versions-{directory.path.resolve().name}"
    refuse_as_target(path, "what is replayed", directory.path)
    overwrite = overwrite or out is None
    RunDirectory.check(path, overwrite=overwrite)
    table = tried_on(models, installed(versions), document.device.kernels)
    claimed, lock = RunDirectory.claim(path, overwrite=overwrite)
    try:
        write_versions(table, claimed.path)
    finally:
        os.close(lock)
    result(path)
    failing = failing_still(document, table)
    kernels = document.device.kernels
    if not has_kernels(table, kernels) and any(finding.verdict != "host" for finding in failing):
        say(
            Console(stderr=True),
            f"The last version has no {printable(kernels)} kernels here: what these do wrong was"
            " not tried, and counts as failing; `edgeflare replay RUN --device` tries it.",
        )
    return int(bool(failing))


def _written(
    runs: list[KernelSetRun[list[RetriedFinding]]], out: Path
) -> list[KernelSetRun[list[RetriedFinding]]]:
    matrix = retry_matrix(runs)
    write_matrix(retry_matrix_document(matrix), retry_matrix_section(matrix), out)
    return runs


def _retried(
    document: ConformDocument,
    models: Sequence[StoredModel],
    profile: Profile,
    path: Path,
    *,
    overwrite: bool,
) -> list[RetriedFinding]:
    """Try findings again on a device, and write those that fail as a run of their own."""
    RunDirectory.check(path, overwrite=overwrite)
    with ExitStack() as stack:
        said = escape(printable(profile.name))
        trying = f"trying {count_of(len(models), 'finding')} on {said}"
        stack.enter_context(Console(stderr=True).status(trying))
        opened = open_conformance(profile, stack, lambda: False)
        claimed, lock = RunDirectory.claim(path, overwrite=overwrite)
        stack.callback(os.close, lock)
        return replay_findings(document, models, opened, claimed)


def _profile(device: Sequence[str] | None, own: str, trust: Trust) -> Profile:
    if device is None:
        return find_run_profiles([own])[0]
    if len(device) > 1:
        raise UserError(
            f"a conformance run is replayed on one device, not on {len(device)}: give --device once"
        )
    return find_profiles(device, trust)[0]


def _line(retried: RetriedFinding) -> RetryLine:
    now = retried.judgement
    detail = now.detail
    if retried.outcome == "otherwise":
        detail = f"{now.verdict}, {in_words(now.symptom)}: {now.detail}"
    return RetryLine(retried.finding, retried.outcome, detail)
