"""The models that hosts have sent: files named by their sha256 in one folder of bounded size.

Several agents may share a folder. Whoever uses a file holds a shared lock on it, whoever makes room
by removing it first takes an exclusive one and holds the folder's lock; a killed agent's locks are
gone with it. The folder's lock is on the folder itself, so that there is no lock file in whose
place somebody could put a link. A file that does not hold what its name says is removed when it is
asked for, whoever uses it: their answers are wrong too, or they have loaded it before.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

# A store of small models may hold many files; one that is forgotten is hashed again.
_MOST_REMEMBERED = 1024

# The file is read in pieces: a device has no room for a second copy of a model.
_BLOCK_BYTES = 1 << 20

_NAME = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".tflite"
_UPLOAD_PREFIX = ".upload-"
_UPLOAD = re.compile(re.escape(_UPLOAD_PREFIX) + r"[a-z0-9_]{8}")
"""Names that `tempfile` makes of it; the folder may hold others' files, which stay."""


class UnsafeFolder(Exception):  # noqa: N818
    """Others could put files into the store's folder; the message is one line."""


class UnknownModel(Exception):  # noqa: N818
    """The store has no such model, or had a damaged one, which it has removed."""


class BadName(Exception):  # noqa: N818
    """What was given is no sha256 in lower-case hexadecimal."""


class StoreFull(Exception):  # noqa: N818
    """The store could not hold a model, not even after evicting all that nobody uses."""


class Corrupted(Exception):  # noqa: N818
    """What arrived is not what was promised."""


class ModelStore:
    """A content-addressed, size-bounded store. Safe with several threads and processes."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        """Make the folder if it is not there, and clear away what killed agents left half-sent.

        Raises:
            OSError: the folder cannot be made or written.
            UnsafeFolder: it belongs to another user, or every user may write to it.

        """
        self._folder = folder
        self.limit_bytes = limit_bytes
        self._hashes = _FileHashes()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = folder.stat()
        if facts.st_uid != os.geteuid():
            raise UnsafeFolder(
                f"{folder} belongs to another user (uid {facts.st_uid}): name a folder of your own "
                "with --store"
            )
        if facts.st_mode & stat.S_IWOTH:
            raise UnsafeFolder(
                f"every user may write to {folder}: `chmod o-w {folder}`, or name another folder "
                "with --store"
            )
        with self._folder_lock():
            for leftover in folder.iterdir():
                if _UPLOAD.fullmatch(leftover.name):
                    _remove_unused(leftover)

    def __contains__(self, sha256: str) -> bool:
        """Tell whether a model is there and undamaged; a damaged one is removed."""
        try:
            with self._opened(sha256):
                return True
        except UnknownModel:
            return False

    def used_bytes(self) -> int:
        """Return the bytes that the models take."""
        return sum(size for _, _, size in self._models())

    @contextlib.contextmanager
    def hold(self, sha256: str) -> Iterator[Path]:
        """Give a model's path, and keep it from eviction meanwhile.

        Raises:
            BadName: see there.
            UnknownModel: see there.

        """
        with self._opened(sha256) as file:
            # The time of use is the access time: the modification time tells of changes.
            os.utime(file.fileno(), ns=(time.time_ns(), os.fstat(file.fileno()).st_mtime_ns))
            yield self._path(sha256)

    def recheck(self, sha256: str) -> None:
        """Hash a model again, whatever is known of its file, and remove it if it is damaged."""
        with contextlib.suppress(UnknownModel), self._opened(sha256, anew=True):
            pass

    @contextlib.contextmanager
    def _opened(self, sha256: str, *, anew: bool = False) -> Iterator[IO[bytes]]:
        """Open a model that is undamaged, under a shared lock; remove one that is damaged."""
        path = self._path(sha256)
        with self._folder_lock():
            file = _open_model(path)
            fcntl.flock(file, fcntl.LOCK_SH)
        with file:
            if anew:
                self._hashes.forget(file)
            if not self._hashes.holds(file, sha256):
                with self._folder_lock(), contextlib.suppress(FileNotFoundError):
                    # Another file may have taken its place.
                    if os.path.samestat(path.lstat(), os.fstat(file.fileno())):
                        path.unlink()
                raise UnknownModel(
                    f"the stored model {sha256} was damaged and has been removed: send it again"
                )
            yield file

    def add(self, sha256: str, size_bytes: int, chunks: Iterable[bytes]) -> list[str]:
        """Store a model, evicting the least recently used ones if need be.

        Args:
            sha256: what the chunks together must hash to.
            size_bytes: what they must add up to.
            chunks: the file, piece by piece.

        Returns:
            The sha256 of each evicted model, least recently used first.

        Raises:
            BadName: see there.
            StoreFull: see there.
            Corrupted: size or hash are not as promised; nothing is kept.

        """
        path = self._path(sha256)
        if size_bytes > self.limit_bytes:
            raise StoreFull(
                f"a model of {size_bytes} bytes does not fit a store of {self.limit_bytes} bytes: "
                "start the agent with a larger --store-limit-mib"
            )
        with self._upload() as file:
            try:
                _receive(file, sha256, size_bytes, chunks)
                with self._folder_lock():
                    evicted = self._make_room(size_bytes, besides=path)
                    os.replace(file.name, path)
                self._hashes.remember(file, sha256)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise StoreFull(f"no space left in {self._folder}") from error
                raise
        return evicted

    @contextlib.contextmanager
    def _upload(self) -> Iterator[IO[bytes]]:
        """Give a new file that no other agent clears away, and remove it unless it was renamed."""
        with tempfile.NamedTemporaryFile(
            dir=self._folder, prefix=_UPLOAD_PREFIX, delete=False
        ) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            try:
                yield file
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(file.name)

    def _make_room(self, size_bytes: int, besides: Path) -> list[str]:
        models = [model for model in self._models() if model[1] != besides]
        excess = sum(size for _, _, size in models) + size_bytes - self.limit_bytes
        evicted = []
        for _, path, size in sorted(models):
            if excess <= 0:
                break
            if _remove_unused(path):
                evicted.append(path.name.removesuffix(_SUFFIX))
                excess -= size
        if excess > 0:
            raise StoreFull(
                f"open sessions hold the store's models; {excess} bytes too few are left: "
                "close sessions, or start the agent with a larger --store-limit-mib"
            )
        return evicted

    def _models(self) -> list[tuple[float, Path, int]]:
        """Return when each model was last used, its path, and its size in bytes."""
        models = []
        for path in self._folder.glob("*" + _SUFFIX):
            if not _NAME.fullmatch(path.stem):
                continue
            with contextlib.suppress(FileNotFoundError):
                facts = path.stat()
                models.append((facts.st_atime, path, facts.st_size))
        return models

    def _path(self, sha256: str) -> Path:
        if not _NAME.fullmatch(sha256):
            raise BadName("a model is named by its sha256: 64 lower-case hexadecimal digits")
        return self._folder / (sha256 + _SUFFIX)

    @contextlib.contextmanager
    def _folder_lock(self) -> Iterator[None]:
        lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _open_model(path: Path) -> IO[bytes]:
    """Open a stored model; what is no regular file, such as a link, is none, and is removed."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise UnknownModel(f"no model {path.stem} in the store") from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    else:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    path.unlink()
    raise UnknownModel(f"no model {path.stem} in the store: there was no regular file")


def _receive(file: IO[bytes], sha256: str, size_bytes: int, chunks: Iterable[bytes]) -> None:
    digest = hashlib.sha256()
    received = 0
    for chunk in chunks:
        received += len(chunk)
        if received > size_bytes:
            raise Corrupted(f"more than the promised {size_bytes} bytes came")
        digest.update(chunk)
        file.write(chunk)
    if received != size_bytes:
        raise Corrupted(f"{received} bytes came, {size_bytes} were promised")
    if digest.hexdigest() != sha256:
        raise Corrupted(f"the bytes have sha256 {digest.hexdigest()}, promised was {sha256}")
    # A device that loses its power must not keep an empty file under a good name.
    file.flush()
    os.fsync(file.fileno())


def _remove_unused(path: Path) -> bool:
    """Remove a file unless somebody holds a lock on it; of a link, the link."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        path.unlink(missing_ok=True)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except (FileNotFoundError, BlockingIOError):
        return False
    finally:
        os.close(descriptor)
    return True


class _FileHashes:
    """The sha256 of files, remembered by what changes when somebody writes to them.

    A worker hashes what it loads, so this decides only whether a model has to be sent again.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, ...], str] = OrderedDict()

    def remember(self, file: IO[bytes], sha256: str) -> None:
        """Remember the sha256 of an open file."""
        self._known[_identity(file)] = sha256
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def forget(self, file: IO[bytes]) -> None:
        """Forget the sha256 of an open file, so that it is hashed again."""
        self._known.pop(_identity(file), None)

    def holds(self, file: IO[bytes], sha256: str) -> bool:
        """Return whether an open file has this sha256; it is hashed unless the sha256 is known."""
        identity = _identity(file)
        if identity not in self._known:
            digest = hashlib.sha256()
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
            if _identity(file) != identity:
                return False  # it was written to meanwhile
            self.remember(file, digest.hexdigest())
            return digest.hexdigest() == sha256
        return self._known.get(identity) == sha256


def _identity(file: IO[bytes]) -> tuple[int, ...]:
    facts = os.fstat(file.fileno())
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
