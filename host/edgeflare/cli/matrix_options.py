"""A device that is named with all its kernel sets, and the folder of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from edgeflare.cli.run_options import RunFolder
from edgeflare.devices.profile import names_all
from edgeflare.errors import UserError
from edgeflare.record.folder import new_folder

Folder = TypeVar("Folder", bound=RunFolder)


def is_matrix(devices: Sequence[str]) -> bool:
    """Tell whether every kernel set of a device is asked for.

    Raises:
        UserError: it is, beside other devices.

    """
    wanted = [name for name in devices if names_all(name)]
    if wanted and len(devices) > 1:
        raise UserError(
            f"--device {wanted[0]} is every kernel set of a device, each with a run of its own:"
            " give it alone"
        )
    return bool(wanted)


def matrix_path(folder: RunFolder, name: str) -> Path:
    """Return the folder of the runs: by default a new one in runs/ of that name.

    Raises:
        UserError: no runs must be made there.

    """
    from edgeflare.matrix.matrix_folder import check_matrix_folder  # noqa: PLC0415 - for few

    path = folder.out or new_folder(f"{name}-matrix")
    check_matrix_folder(path, resume=folder.resume, overwrite=folder.overwrite)
    return path


def of_kernel_set(folder: Folder, path: Path) -> Folder:
    """Return how the run of one kernel set begins: where it had not yet begun, it is not resumed.

    Args:
        folder: how all of them begin.
        path: the run directory of that kernel set.

    """
    from edgeflare.matrix.matrix_folder import is_begun  # noqa: PLC0415 - for few

    return replace(folder, out=path, resume=folder.resume and is_begun(path))
