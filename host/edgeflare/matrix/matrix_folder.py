"""The folder of a matrix: a run directory for each kernel set, named after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError
from edgeflare.record.folder import FolderKind, remove_documents
from edgeflare.record.folder_contents import FOLDER, list_as
from edgeflare.run.run_directory import RUN, RunDirectory
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels

MATRIX_DOCUMENT: Final = "matrix.json"
MATRIX_TABLE: Final = "matrix.md"

MATRIX: Final = FolderKind("matrix of kernel sets", files=(MATRIX_DOCUMENT, MATRIX_TABLE))


def check_matrix_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder in which no runs of kernel sets may be made.

    Raises:
        UserError: it is a file or a run, or it holds something and that is neither a matrix to go
            on with nor one to replace; or there is none to go on with.

    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    if resume and not any(is_begun(out / kernels) for kernels in KERNEL_SETS):
        raise UserError(
            f"there is no run of a kernel set in {out} to go on with: correct --out, or leave"
            " --resume out"
        )
    if not resume:
        MATRIX.check(out, overwrite=overwrite)
    if overwrite:
        for kernels in KERNEL_SETS:
            RunDirectory.check(out / kernels, overwrite=True)


@contextmanager
def claimed_matrix(out: Path, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Make or take the folder of a matrix, which no other process works in meanwhile.

    Raises:
        UserError: as of `check_matrix_folder`, or another process works there.

    """
    with MATRIX.take(
        out, lambda: check_matrix_folder(out, resume=resume, overwrite=overwrite)
    ) as claimed:
        if not resume:
            claimed.require_unchanged()
        for kernels in KERNEL_SETS:
            list_as(out, kernels, FOLDER)
        yield


def remove_tables(out: Path) -> None:
    """Remove what an earlier matrix says, since its runs went on or were replaced."""
    remove_documents(out, MATRIX_DOCUMENT, MATRIX_TABLE)


def remove_other_runs(out: Path, ran: Collection[Kernels]) -> None:
    """Remove the runs of an earlier matrix on kernel sets that this one has no run of.

    Args:
        out: a folder that `check_matrix_folder` let pass to be written over.
        ran: the kernel sets that have a run.

    Raises:
        UserError: another process works on one of them.

    """
    for run in (out / kernels for kernels in KERNEL_SETS if kernels not in ran):
        if run.is_dir():
            RUN.remove(run)


def is_begun(run: Path) -> bool:
    """Tell whether the run of a kernel set has begun, so that it can be resumed."""
    directory = RunDirectory(run)
    return directory.journal.exists() or directory.conform_journal.exists()


def a_begun_run(out: Path) -> Path:
    """Return the run directory of a kernel set that has begun; the folder itself if none has."""
    runs = (out / kernels for kernels in KERNEL_SETS)
    return next((run for run in runs if is_begun(run)), out)
