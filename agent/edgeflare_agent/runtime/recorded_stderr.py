"""What a library writes to stderr while it does something: some say nowhere else what went on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

_MOST_BYTES = 1 << 20
"""Read of what was written; a log about hundreds of operators has some kilobytes."""


@contextmanager
def recorded_stderr() -> Iterator[RecordedStderr]:
    """Record what is written to stderr by whatever language; it is lost to others."""
    with tempfile.TemporaryFile() as file:
        recorded = RecordedStderr(file)
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield recorded
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            recorded.end()


class RecordedStderr:
    """What has been written since the recording began; all of it once that has ended."""

    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        self._ended: str | None = None

    @property
    def text(self) -> str:
        """What was written; bytes that are no UTF-8 are replaced."""
        if self._ended is not None:
            return self._ended
        return os.pread(self._file.fileno(), _MOST_BYTES, 0).decode("utf-8", "replace")

    def end(self) -> None:
        """Keep what was recorded; the file is about to be closed."""
        self._ended = self.text
