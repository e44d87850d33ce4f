"""Options that mean something for the run of a search alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edgeflare.errors import UserError


def refuse_options_of_searches(given: Mapping[str, object], run: Path) -> None:
    """Refuse options that were given for a conformance run, and say nothing of one.

    Args:
        given: options by their names, with what the user gave; falsy where that is nothing.
        run: the run directory.

    Raises:
        UserError: one was given.

    """
    for name, value in given.items():
        if value:
            raise UserError(
                f"{name} is for what a search or a survey found, and {run} is a conformance run:"
                f" leave {name} out"
            )
