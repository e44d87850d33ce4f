"""The two families of errors that a user meets, their exit codes, and what was probably meant."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final

_OF_THE_PATH: Final = frozenset(
    {
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
    }
)
"""Errors of the system that say of a path that it is none; others are a disk's or a permission."""

_LIKENESS = 0.5
"""Least likeness for difflib: by it "ref" means "reference", and "zzz" means nothing."""

_LONGEST = 200
"""Most characters of a name that may be meant; likeness takes the square of the length."""

_MOST = 10_000
"""Known names that are looked through: a table of somebody else's may have any number."""

_MEANT = " (did you mean {!r}?)"


class EdgeFlareError(Exception):
    """An error whose message is one line, written for the user."""

    exit_code: int = 3


class UserError(EdgeFlareError):
    """What was asked for cannot be done as it was said: what was wrong, and what to do (exit 2)."""

    exit_code = 2


class InfrastructureError(EdgeFlareError):
    """What was asked for is right, but a device, a process or a disk failed (exit 3)."""

    exit_code = 3


def kind_at_named_path(error: OSError) -> type[UserError | InfrastructureError]:
    """Return the family of an error of the system at a path that the user has named."""
    return UserError if error.errno in _OF_THE_PATH else InfrastructureError


def suggestion(name: str, known: Iterable[str], form: str = _MEANT) -> str:
    """Return `form`, filled with the known name most like `name`; nothing where none is like it."""
    if len(name) > _LONGEST:
        return ""
    matches = get_close_matches(name, list(islice(known, _MOST)), n=1, cutoff=_LIKENESS)
    return form.format(matches[0]) if matches else ""


def path_suggestion(path: Path, fits: Callable[[Path], bool]) -> str:
    """Return ` (did you mean 'PATH'?)` for a path that does not exist; nothing where none is like.

    The first part of the path that does not exist is compared with what is in its folder.

    Args:
        path: a path that does not exist.
        fits: tells whether a path can be what was meant.

    """
    try:
        missing = [path.name]
        while not path.parent.exists():
            path = path.parent
            missing.insert(0, path.name)
        folder, (first, *rest) = path.parent, missing
        known = {entry.name: entry.joinpath(*rest) for entry in folder.iterdir()}
        like = suggestion(first, [name for name in known if fits(known[name])], "{}")
    except OSError:
        return ""
    return _MEANT.format(str(known[like])) if like else ""
