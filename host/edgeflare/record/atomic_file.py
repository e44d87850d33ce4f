"""A file that is written as a whole or not at all, and listed where its folder has a list."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.record.folder_contents import (
    FOLDER,
    LIST,
    STATE,
    FolderContents,
    list_file,
    listed_by,
    new_file,
    read_contents,
    sha256_of,
    unfinished_state,
)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that whoever reads it sees all of it or none; folders are made.

    It is listed first, if it lies in a folder that has a list.

    Raises:
        UserError: somebody else has put a file there, in a folder that EdgeFlare made.
        OSError: the file cannot be written; names it, also where the system names none.

    """
    try:
        _write_atomically(path, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    folder = None if path.name == LIST else listed_by(path.absolute())
    if folder is None or _is_in_folder_without_list(folder, path):
        _put(path, data, unfinished)
    else:
        listed = _which_list(folder)
        name, digest = path.absolute().relative_to(folder), hashlib.sha256(data).hexdigest()
        contents = _require_ours(folder, path, name.as_posix())
        if contents.changing.get(name.as_posix()) == STATE:
            unfinished = unfinished_state(path)
        elif (
            digest in contents.digests.get(name.as_posix(), ())
            and path.exists()
            and sha256_of(path) == digest
        ):
            return
        else:
            through = name.with_name(unfinished.name).as_posix()
            list_file(folder, name.as_posix(), digest, through)
        try:
            _put(path, data, unfinished)
        except FileNotFoundError:  # another command has removed it as what a killed one left
            _put(path, data, unfinished)
        while listed != (listed := _which_list(folder)):  # another has replaced the content
            if contents.changing.get(name.as_posix()) != STATE:
                list_file(folder, name.as_posix(), digest)


def _put(path: Path, data: bytes, unfinished: Path) -> None:
    """Write a file under another name first, and give it its own."""
    try:
        with new_file(unfinished) as file:
            file.write(data)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _which_list(folder: Path) -> int | None:
    """Return which file the list of a folder is; None where it has none."""
    try:
        return (folder / LIST).lstat().st_ino
    except FileNotFoundError:
        return None


def _require_ours(folder: Path, path: Path, name: str) -> FolderContents:
    """Return what the list of a folder says; refuse to replace a file of somebody else's in it."""
    contents = read_contents(folder) or FolderContents("")
    if os.path.lexists(path) and not contents.is_ours(folder, name):
        raise UserError(
            f"{path} would be written over, and is not what edgeflare put there: move it away, and"
            " type the same command again"
        )
    return contents


def _is_in_folder_without_list(folder: Path, path: Path) -> bool:
    """Tell whether the nearest list leaves a file to that of a folder within, which is lost."""
    contents = read_contents(folder)
    inner = path.absolute().relative_to(folder).parents
    return contents is not None and any(
        contents.changing.get(entry.as_posix()) == FOLDER for entry in inner
    )
