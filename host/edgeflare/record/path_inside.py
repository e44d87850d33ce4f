"""Names that documents give, made paths: the one place where that is done."""

from __future__ import annotations

import os
from pathlib import Path

from edgeflare.errors import UserError


def path_inside(folder: Path, name: object, *, single: bool = False) -> Path:
    """Return the path of what a document or a journal names in a folder.

    Folders are passed between people, and what is in them is not to be believed: each name from a
    document is resolved by this function before anything is opened, written or removed by it.

    Args:
        folder: folder that the name is relative to.
        name: what the document says; the file may be absent.
        single: whether it names an entry of the folder itself, and nothing below that.

    Raises:
        UserError: the name is no text, empty or absolute, or leaves the folder by `..` or by a
            symbolic link, or leads below another folder and must not.

    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise UserError(f"{folder} names {name!r} as a file in it: expected a relative path")
    if single and ("/" in name or "\\" in name or name in (".", "..")):
        raise UserError(f"{folder} names {name!r}: expected the plain name of something in it")
    path = folder / name
    try:
        base = os.path.realpath(folder)
        within = f"{os.path.realpath(path)}/".startswith(f"{base.rstrip('/')}/")
    except (OSError, RuntimeError):  # a circle of symbolic links, or a name that is too long
        within = False
    if Path(name).is_absolute() or ".." in Path(name).parts or not within:
        raise UserError(
            f"{folder} names {name!r}, which is outside of it: such a folder may name only files of"
            " its own, so do not trust this one, or make it again"
        )
    return path
