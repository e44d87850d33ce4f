"""The entry points of all installed packages, which are read from disk once for all groups."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import cache
from importlib.metadata import EntryPoints
from typing import Any


def entry_points(*, group: str) -> EntryPoints:
    """Return the entry points of a group, as `importlib.metadata.entry_points` does.

    That reads the files of every installed package anew for each group, and a search asks for five.
    """
    found: EntryPoints = _read(tuple(sys.path)).select(group=group)
    return found


@cache
def _read(_path: tuple[str, ...]) -> Any:
    """Return the entry points of all groups on a search path, in a type that differs by Python."""
    return importlib.metadata.entry_points()
