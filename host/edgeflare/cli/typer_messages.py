"""Complaints of Typer about options, in the words of ours.

Some of its versions have pydantic check values, whose sentences are about an "input".
"""

from __future__ import annotations

import re
from typing import Final

_SENTENCES: Final = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer\b.*", "expected a whole number"),
    (r"Input should be a valid number\b.*", "expected a number"),
    (r"Input should be greater than or equal to (\S+)", r"expected \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"expected \1 or less"),
    (r"Input should be ", "expected "),
    (
        r"(No such option: --json)(?!\w).*",
        r"\1: `edgeflare report RUN --json` prints what a run has written",
    ),
)


def reworded(complaint: str) -> str:
    """Return a complaint in plain words; one that is in plain words already stays as it is."""
    for theirs, ours in _SENTENCES:
        complaint = re.sub(theirs, ours, complaint)
    return complaint
