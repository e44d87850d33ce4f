"""Work that goes on where it was stopped, which is what a failure says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from edgeflare.errors import InfrastructureError


@contextmanager
def resumable_work() -> Iterator[None]:
    """Say of whatever fails that the same command with --resume goes on.

    Raises:
        InfrastructureError: as the work raises it, with how to go on.

    """
    try:
        yield
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; the same command with --resume goes on") from error
