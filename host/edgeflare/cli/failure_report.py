"""What is said of a run that a device, a process or a disk ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeflare.errors import InfrastructureError
from edgeflare.record.database import DamagedDatabaseError
from edgeflare.record.journal import damaged_journal
from edgeflare.run.run_directory import RunDirectory


@contextmanager
def failures_reported(directory: RunDirectory, resumed_at: Path) -> Iterator[None]:
    """Say of a failure of a device, a process or a disk where the run is, and what to type next.

    Args:
        directory: the run directory.
        resumed_at: what the user names to go on: it, or the folder of several runs that it is in.

    """
    try:
        yield
    except DamagedDatabaseError as error:
        raise damaged_journal(error.path, error.why) from None
    except (InfrastructureError, OSError) as error:
        raise InfrastructureError(
            f"{error}; what was found is in {directory.path}, and the same command with "
            f"--out {resumed_at} --resume goes on"
        ) from error
