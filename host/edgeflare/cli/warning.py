"""A line on stderr about what is left out, while the command goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from edgeflare.errors import UserError
from edgeflare.untrusted_text import for_terminal

T = TypeVar("T")


def unless_damaged(load: Callable[[], T]) -> T | None:
    """Return what is loaded; where it is damaged, say so, and return None."""
    try:
        return load()
    except UserError as error:
        warn(str(error))
        return None


def warn(line: str) -> None:
    """Print a warning."""
    sys.stderr.write(f"warning: {for_terminal(' '.join(line.split()))}\n")
