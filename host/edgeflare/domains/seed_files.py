"""The files of which seeds consist, and what is said where there are no seeds."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from edgeflare.core.seeds import SeedChoice, ids_of
from edgeflare.errors import UserError
from edgeflare.suggestion import path_suggestion


def seed_files(path: Path, suffixes: Collection[str]) -> list[Path]:
    """Return a file itself, or the files of a folder that have one of some suffixes, by name."""
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in suffixes and not file.name.startswith(".") and file.is_file()
    )


def chosen_files(
    path: Path, suffixes: Collection[str], choice: SeedChoice
) -> tuple[list[Path], tuple[int, ...]]:
    """Return the files of a folder that are taken, by name, and the ids of their seeds."""
    files = seed_files(path, suffixes)
    places = choice.places(len(files))
    return [files[place] for place in places.tolist()], ids_of(places)


def require_seeds(path: Path, what: str) -> None:
    """Refuse a path at which there can be no seeds.

    Args:
        path: as the user gave it.
        what: a folder of them holds, in the plural.

    Raises:
        UserError: there is nothing, or neither a folder nor an `.npz` file.

    """
    if not path.exists():
        like = path_suggestion(path, lambda one: one.is_dir() or one.suffix == ".npz")
        raise UserError(
            f"there are no seeds at {path}{like}: give an .npz file or a folder of {what}"
        )
    if not path.is_dir() and (path.suffix.lower() != ".npz" or not path.is_file()):
        raise UserError(f"seeds {path}: expected an .npz file or a folder of {what}")
