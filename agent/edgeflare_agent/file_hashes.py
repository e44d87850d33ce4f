"""The sha256 of stored files, remembered so that an unchanged model is hashed once."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from typing import IO

# A store of small models may hold many files; one that is forgotten is hashed again.
_MOST_REMEMBERED = 1024

# The file is read in pieces: a device has no room for a second copy of a model.
_BLOCK_BYTES = 1 << 20


class FileHashes:
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
