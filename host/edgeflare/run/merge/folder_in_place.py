"""A run directory that takes the place of another once it is whole, and not before."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.run.run_directory import DOCUMENT, JOURNAL, RunDirectory
from edgeflare.run.run_lock import lock_run


@contextmanager
def made_in_place_of(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a new folder, which takes the place of a run directory if all goes well.

    Until then what is there stays as it is. Files there that are none of a run are kept.

    Args:
        out: the place; may be absent, empty, or a symbolic link to such a folder.
        overwrite: replace a run that is there.

    Raises:
        UserError: there is something that must not be replaced, or another process works on it, or
            no folder can be made there.

    """
    RunDirectory.check(out, overwrite=overwrite)
    if out.is_dir():
        os.close(lock_run(out))  # which refuses one that another process works on
    place = Path(os.path.realpath(out))
    mounted = place.is_dir() and os.path.ismount(place)
    beside = place if mounted else place.parent
    try:
        beside.mkdir(parents=True, exist_ok=True)
        made = beside / f".{place.name}.{secrets.token_hex(4)}"
        made.mkdir()
    except OSError as error:
        raise UserError(f"cannot make a folder in {beside}: {error.strerror}") from None
    try:
        yield made
        if mounted:
            _move_into(made, place)
        else:
            _take_place(made, place)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _take_place(made: Path, place: Path) -> None:
    """Put a folder into a place; what was there is put aside first, and back if that fails."""
    if not place.is_dir():
        os.rename(made, place)
        return
    aside = made.with_name(f"{made.name}.before")
    os.rename(place, aside)
    try:
        os.rename(made, place)
    except BaseException:
        os.rename(aside, place)
        raise
    RunDirectory.claim(aside, overwrite=True)  # what remains is none of a run
    for kept in aside.iterdir():
        if not (place / kept.name).exists():
            os.rename(kept, place / kept.name)
    shutil.rmtree(aside, ignore_errors=True)


def _move_into(made: Path, place: Path) -> None:
    """Move the content of a folder into a place that is no name of its own: a mounted volume."""
    if any((place / name).exists() for name in (JOURNAL, DOCUMENT)):
        RunDirectory.claim(place, overwrite=True)
    for one in sorted(made.iterdir()):
        os.replace(one, place / one.name)
