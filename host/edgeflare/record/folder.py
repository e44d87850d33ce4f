"""A folder that a command makes or takes, works in alone, and replaces the content of in one step.

What is to replace the content is made in `.edgeflare/made` within the folder. One rename, to
`.edgeflare/replacing`, decides that it does; then what EdgeFlare had put into the folder is removed
file by file, and after a rename to `.edgeflare/moving` the new files are moved to their places.
Whoever next opens the folder to write does the rest of that, or removes what was made for a
replacement that was not decided, and says so. What somebody else put into the folder is neither
moved nor removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from edgeflare.errors import InfrastructureError, UserError, kind_at_named_path
from edgeflare.record.folder_contents import (
    BEGUN_LIST,
    FOLDER,
    LIST,
    begin_list,
    is_begun_list,
    list_as,
    list_file,
    list_replaced_by,
    listed_by,
    present,
    read_contents,
    sha256_of,
)
from edgeflare.record.folder_lock import lock_folder, locked
from edgeflare.record.path_inside import path_inside
from edgeflare.untrusted_text import printable

_STAGE: Final = ".edgeflare"
_MADE: Final = Path(_STAGE) / "made"
_SCRATCH: Final = Path(_STAGE) / "scratch"
_REPLACING: Final = Path(_STAGE) / "replacing"
_MOVING: Final = Path(_STAGE) / "moving"

_TRIES: Final = 50
"""Tries to make a folder that other commands remove meanwhile."""


@dataclass(frozen=True, slots=True)
class FolderKind:
    """What a command writes a folder of.

    Attributes:
        holds: what lists of such folders and messages call it, such as "run".
        others: what else folders may hold that are taken for one of the kind.
        files: names of the files that the command writes, where nothing of somebody else's may lie.
        folders: names of the folders that it writes files into.
        resumable: whether `--resume` goes on with it.

    """

    holds: str
    others: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    resumable: bool = True

    def check(self, path: Path, *, overwrite: bool) -> None:
        """Refuse a path that cannot become a folder of the kind, without touching it.

        Raises:
            UserError: there is something at the path that must not be written over.

        """
        if os.path.lexists(path) and not path.is_dir():
            raise UserError(f"{path} is a file: name a folder with --out")
        if is_free(path) or half_replaced(path) is not None:  # which a claim ends first
            return
        contents = read_contents(path)
        if contents is None:
            raise UserError(
                f"{path} is neither empty nor a {self.holds}: name another folder with --out"
            )
        if contents.holds not in (self.holds, *self.others):
            raise UserError(
                f"{path} holds a {printable(contents.holds)}, and no {self.holds}: name another"
                " folder with --out"
            )
        if not overwrite:
            resumed = "go on with --resume, " if self.resumable else ""
            raise UserError(
                f"{path} holds a {self.holds} already: {resumed}replace it with --overwrite, "
                "or name another folder with --out"
            )

    def claim(self, path: Path, *, overwrite: bool, by: str = "") -> ClaimedFolder:
        """Make or take a folder, which no other process writes until it is closed.

        What is there stays as it is. What a killed command has left to do there is done.

        Args:
            path: path of the folder; may be absent or empty.
            overwrite: whether what EdgeFlare has put there may be replaced.
            by: the command, for those who read what it was killed over.

        Raises:
            UserError: there is something at the path that must not be written over, or another
                process works on it, or it cannot be a folder's.

        """
        if os.path.lexists(path) and not path.is_dir():
            raise UserError(f"{path} is a file: name a folder with --out")
        made, lock = _made_and_locked(path)
        claimed = ClaimedFolder(path, self, by, lock, made)
        try:
            mend(path)
            self.check(path, overwrite=overwrite)
            if read_contents(path) is None:
                begin_list(path, self.holds)
            claimed.require_unchanged()
        except BaseException:
            claimed.close()
            raise
        return claimed

    def take(self, path: Path, check: Callable[[], None]) -> ClaimedFolder:
        """Take a folder that is gone on with, or make one; see `claim`.

        Args:
            path: path of the folder.
            check: refuses what is there, and is asked once nobody else writes it.

        Raises:
            UserError: another process works on it, or it cannot be a folder's, or as `check`
                raises it.

        """
        made, lock = _made_and_locked(path)
        claimed = ClaimedFolder(path, self, "", lock, made)
        try:
            mend(path)
            check()
            # A folder whose list is lost is gone on with as it is. In a new list its documents
            # would be missing, and what takes their place at the end be refused.
            if read_contents(path) is None and not present(path, self.files):
                begin_list(path, self.holds)
        except BaseException:
            claimed.close()
            raise
        return claimed

    def empty(self, path: Path) -> None:
        """Remove what EdgeFlare has put into a folder that is claimed, and nothing else."""
        _remove_listed(path, keep_list=True)
        begin_list(path, self.holds)

    def remove(self, path: Path) -> None:
        """Remove what EdgeFlare has put into a folder, and that too if nothing else is in it.

        With something else in it, it can be made one of the kind again.

        Raises:
            UserError: it is none of the kind, or another process works on it.

        """
        with self.claim(path, overwrite=True) as claimed:
            claimed.empty()
        with contextlib.suppress(OSError):
            path.rmdir()


@dataclass(frozen=True, slots=True)
class ClaimedFolder:
    """A folder that this process alone writes."""

    path: Path
    kind: FolderKind
    by: str
    lock: int
    made: tuple[Path, ...]

    def close(self) -> None:
        """Let other processes write there; what was made for nothing that came goes."""
        with contextlib.suppress(OSError):
            if is_free(self.path):
                for name in (LIST, BEGUN_LIST):
                    (self.path / name).unlink(missing_ok=True)
                for folder in self.made:
                    folder.rmdir()
        os.close(self.lock)

    def __enter__(self) -> ClaimedFolder:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def require_unchanged(self) -> None:
        """Refuse a folder in which somebody else's files are in the way of what is written."""
        path, contents = self.path, read_contents(self.path)
        listed = () if contents is None else contents.names
        for name in present(path, dict.fromkeys((*listed, *self.kind.files))):
            if contents is None or not contents.may_be_written(path, name):
                raise _in_the_way(path / name)
        for name in self.kind.folders:
            if os.path.lexists(path / name) and not _is_folder(path / name):
                raise _in_the_way(path / name)

    def empty(self) -> None:
        """Remove what EdgeFlare has put there, and nothing else."""
        self.kind.empty(self.path)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a folder for what is needed on the way, and remove it."""
        folder = self.path / _SCRATCH
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                folder.parent.rmdir()

    @contextmanager
    def replaced(self) -> Iterator[Path]:
        """Yield a new folder, whose content takes the place of what is ours if all goes well.

        Raises:
            UserError: meanwhile somebody has put there what would be written over.

        """
        made = self.path / _MADE
        made.mkdir(parents=True)
        try:
            begin_list(made, self.kind.holds)
            yield made
            if not os.path.samestat(os.stat(self.path), os.fstat(self.lock)):
                raise UserError(f"{self.path} was moved meanwhile: type the same command again")
            _list_all(made)
            # Somebody else's file may lie at the place of a new one, or of its folder.
            contents = read_contents(self.path)
            for name in _files(made):
                _require_folders(self.path, name)
                known = name == LIST or (contents is not None and contents.knows(self.path, name))
                if os.path.lexists(self.path / name) and not known:
                    raise _in_the_way(self.path / name)
            list_replaced_by(made, self.by)
            os.rename(made, self.path / _REPLACING)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            with contextlib.suppress(OSError):
                made.parent.rmdir()
            raise
        _roll_forward(self.path)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Keep every other process from writing a folder, to which files are added meanwhile."""
    with locked(path):
        mend(path)
        yield


@contextmanager
def file_written(path: Path) -> Iterator[None]:
    """Keep every other process from writing the folder of ours that a file is put into, if any.

    Args:
        path: path of the file, which its user has named.

    """
    folder = listed_by(path.absolute())
    with contextlib.nullcontext() if folder is None else written(folder):
        yield


def require_suffix(option: str, path: Path, suffix: str) -> None:
    """Refuse a file that a user has named for something to be written to, unless it ends so.

    It replaces what is there, which by a slip may be a model, or what a run has stored.

    Raises:
        UserError: it ends otherwise.

    """
    if path.suffix.lower() != suffix:
        raise UserError(f"{option} {path}: expected the name of a file that ends with {suffix}")


def mend_folder(path: Path) -> None:
    """Do what a killed command has left to do in a folder, if there is one; see `written`."""
    if path.is_dir():
        with written(path):
            pass


def mend(path: Path) -> None:
    """Do what a killed command has left to do in a folder that is locked, and say so.

    Raises:
        UserError: somebody else's file lies where a new one goes.

    """
    contents = read_contents(path)
    stage = path / _STAGE
    if contents is None or stage.is_symlink():  # only folders there are ours
        return
    for name in present(path, contents.unfinished):
        if contents.is_ours(path, name):
            (path / name).unlink(missing_ok=True)
    if is_begun_list(path / BEGUN_LIST):
        (path / BEGUN_LIST).unlink()
    if half_replaced(path) is not None:
        _roll_forward(path)
        _say(f"ended what a killed command had begun: {path} is replaced")
    elif left := [path / at for at in (_MADE, _SCRATCH) if _is_stage(path, at)]:
        for entry in left:
            shutil.rmtree(entry)
        _say(f"removed what a killed command had begun in {path}")
    with contextlib.suppress(OSError):
        stage.rmdir()


def is_free(path: Path) -> bool:
    """Tell whether there is nothing at a path but what a command was killed over as it began."""
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        return True
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if BEGUN_LIST in names and is_begun_list(path / BEGUN_LIST):
        names.remove(BEGUN_LIST)
    if LIST in names and read_contents(path) is not None:
        names -= {LIST} if half_replaced(path) is not None else {LIST, _STAGE}
    return not names


def half_replaced(path: Path) -> Path | None:
    """Return where the new content of a folder lies that is half replaced; None for any other."""
    return next((path / at for at in (_REPLACING, _MOVING) if _is_stage(path, at)), None)


def require_whole(path: Path) -> None:
    """Refuse to read a folder whose content is half replaced."""
    new = half_replaced(path)
    contents = None if new is None else read_contents(new)
    if contents is not None:
        by = f" ({printable(contents.by)})" if contents.by else ""
        raise UserError(
            f"{path} is half replaced, since the command that did it was killed{by}: type that"
            " command again, which ends it"
        )


def remove_ours(path: Path) -> None:
    """Remove what EdgeFlare has put into a folder, and the folder if nothing else is in it."""
    with written(path):
        _remove_listed(path, keep_list=False)
    with contextlib.suppress(OSError):
        path.rmdir()


def remove_files(path: Path, *names: str) -> None:
    """Remove files from a folder that are listed and as EdgeFlare left them.

    Their folders go too, where nothing else is in them.
    """
    contents = read_contents(path)
    if contents is None:
        return
    ours = [name for name in present(path, names) if contents.is_ours(path, name)]
    for name in ours:
        path_inside(path, name).unlink(missing_ok=True)
    _remove_emptied(path, names)


def remove_documents(path: Path, *names: str) -> None:
    """Remove documents that a kind of folder always has by the same names; see `remove_files`.

    Where the list of the folder is lost, all that have such names are taken for ours, as they are
    where they are written anew.
    """
    if read_contents(path) is not None:
        remove_files(path, *names)
        return
    for name in present(path, names):
        if (path / name).is_file() and not (path / name).is_symlink():
            path_inside(path, name).unlink(missing_ok=True)
    _remove_emptied(path, names)


def require_ours(path: Path, *names: str) -> None:
    """Refuse to go on with a folder in which others have changed what is written anew.

    Where the list of the folder is lost, nothing tells; see `remove_documents`.

    Raises:
        UserError: one of the names is that of a file that is not as EdgeFlare left it.

    """
    contents = read_contents(path)
    if contents is None:
        return
    for name in present(path, names):
        if not contents.is_ours(path, name):
            raise _in_the_way(path / name)


def _made_and_locked(path: Path) -> tuple[tuple[Path, ...], int]:
    """Make a folder if there is none, and lock it; return the folders made, and the lock."""
    for tries_left in reversed(range(_TRIES)):
        absent = tuple(folder for folder in (path, *path.parents) if not folder.is_dir())
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = lock_folder(path)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and tries_left:
                continue  # another command, which made it too, has just removed it
            raise kind_at_named_path(error)(
                f"cannot make a folder {path}: {error.strerror}"
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(lock)):
                return absent, lock
        os.close(lock)
    raise InfrastructureError(f"{path} is removed again and again: name another folder with --out")


def _remove_listed(path: Path, *, keep_list: bool) -> None:
    """Remove what a list names and is as EdgeFlare left it, and the folders that this empties."""
    contents = read_contents(path)
    if contents is None:
        if is_begun_list(path / BEGUN_LIST):
            (path / BEGUN_LIST).unlink()
        return
    ours = [name for name in present(path, contents.names) if contents.is_ours(path, name)]
    for name in ours:
        one = path_inside(path, name)
        if contents.changing.get(name) == FOLDER:
            remove_ours(one)
        else:
            one.unlink(missing_ok=True)
    _remove_emptied(path, ours)
    if not keep_list:
        (path / LIST).unlink(missing_ok=True)


def _remove_emptied(path: Path, names: Sequence[str]) -> None:
    """Remove the folders of files that are gone, as far as nothing else is in them."""
    parents = {parent.as_posix() for name in names for parent in list(Path(name).parents)[:-1]}
    for parent in sorted(present(path, parents), key=lambda name: name.count("/"), reverse=True):
        with contextlib.suppress(OSError, UserError):
            path_inside(path, parent).rmdir()


def _list_all(made: Path) -> None:
    """List what was put into a new folder without a line of its own; all in it is ours."""
    contents = read_contents(made)
    if contents is None:
        raise UserError(f"{made} is gone: type the same command again")
    for at, folders, names in os.walk(made):
        for name in list(folders):
            if (one := Path(at) / name) != made and read_contents(one) is not None:
                folders.remove(name)
                list_as(made, one.relative_to(made).as_posix(), FOLDER)
        for file in (Path(at) / name for name in names):
            name = file.relative_to(made).as_posix()
            if name != LIST and not contents.is_ours(made, name):
                list_file(made, name, sha256_of(file))


def _require_folders(path: Path, name: str) -> None:
    """Refuse where something else, such as a link, is in the place of a file's folder."""
    for parent in reversed(list(Path(name).parents)[:-1]):
        if os.path.lexists(path / parent) and not _is_folder(path / parent):
            raise _in_the_way(path / parent)


def _roll_forward(path: Path) -> None:
    """Do what is left of a replacement that is decided: each step once, whenever it is killed."""
    new = path / _MOVING
    if _is_stage(path, _REPLACING):
        _remove_listed(path, keep_list=True)
        os.rename(path / _REPLACING, new)
    if (new / LIST).is_file():
        for name in _files(new):
            if name != LIST:
                _require_folders(path, name)  # what is half replaced may be a stranger's
                _move(new / name, path / name)
        os.replace(new / LIST, path / LIST)
    shutil.rmtree(new)  # folders, which are empty
    with contextlib.suppress(OSError):
        new.parent.rmdir()


def _move(path: Path, place: Path) -> None:
    """Move a file to a place where nothing lies; what somebody has put there meanwhile stays."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(place):
            _link(path, place)
    except (FileExistsError, NotADirectoryError):
        raise _in_the_way(place) from None
    if path.exists() and not _is_same_file(path, place):
        raise _in_the_way(place)
    path.unlink(missing_ok=True)


def _is_same_file(path: Path, place: Path) -> bool:
    """Tell whether a file has two names, or lies in two places, as a kill can have left it."""
    if os.path.samestat(place.lstat(), path.lstat()):
        return True
    return place.is_file() and not place.is_symlink() and sha256_of(place) == sha256_of(path)


def _link(path: Path, place: Path) -> None:
    """Give a file a second name that nothing has; its only one where there can be no second."""
    try:
        os.link(path, place)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.rename(path, place)


def _is_stage(path: Path, at: Path) -> bool:
    """Tell whether there is a folder in `.edgeflare` to which no link leads."""
    return _is_folder(path / _STAGE) and _is_folder(path / at)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _in_the_way(path: Path) -> UserError:
    return UserError(
        f"{path} is not as edgeflare left it, and would be lost: move it away, or name another"
        " folder with --out"
    )


def _files(folder: Path) -> list[str]:
    """Return the files below a folder, relative to it, in a fixed order."""
    found = []
    for at, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(at, name), folder) for name in names]
    return sorted(found)


def _say(line: str) -> None:
    sys.stderr.write(f"edgeflare: {printable(line)}\n")


def new_folder(name: str) -> Path:
    """Return the path of a folder in `runs/` that no command has made yet, named after the time.

    It says microseconds, since runs begin in the same second in a loop, in threads and in processes
    of a pool.

    Args:
        name: what it begins with, such as the name of a pair and of a command.

    """
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S-%f}"
