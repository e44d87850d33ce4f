"""Pairs made after public reports, as folders of files that a test may change."""

from __future__ import annotations

import shutil
from pathlib import Path

CASES = Path(__file__).parents[1] / "cases"
"""Folder of the cases, with a README that gives the right answer to each."""


def copied_case(name: str, folder: Path) -> Path:
    """Return a copy of a case's pair below `folder`, such as `"output_swapped/no_heads"`."""
    return Path(shutil.copytree(CASES / name, folder / Path(name).name))
