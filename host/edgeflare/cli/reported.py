"""What `edgeflare report` shows and writes, of a run, a survey or a repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from edgeflare.cli.console import Console
from edgeflare.errors import UserError


@dataclass(frozen=True, slots=True)
class Reported:
    """What is reported.

    Attributes:
        document: returns it as plain JSON values.
        show: prints it.
        files: by the switch: the name of a file, and what returns its content.

    """

    document: Callable[[], Any]
    show: Callable[[Console], None]
    files: Mapping[str, tuple[str, Callable[[], bytes]]]


@contextmanager
def extra_needed() -> Iterator[None]:
    """Say how to install what an import within it lacks."""
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"--html needs {error.name}, which is not installed: pip install 'edgeflare[report]'"
        ) from None
