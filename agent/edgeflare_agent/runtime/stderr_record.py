"""What a library writes to stderr while it does something: some say nowhere else what went on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from edgeflare_agent.runtime.shared_memory import nameless_file

_MOST_BYTES = 1 << 20
"""Read of what was written; a log about hundreds of operators has some kilobytes."""


@contextmanager
def recorded_stderr() -> Iterator[RecordedStderr]:
    """Record what is written to stderr by whatever language.

    It is lost to others, also to those who read the last words of a process that dies meanwhile.
    """
    file = nameless_file("edgeflare-stderr")
    recorded = RecordedStderr(file)
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield recorded
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        recorded.end()
        os.close(file)


class RecordedStderr:
    """What has been written since the recording began; all of it once that has ended."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._ended: str | None = None

    @property
    def text(self) -> str:
        """What was written; bytes that are no UTF-8 are replaced."""
        if self._ended is not None:
            return self._ended
        return os.pread(self._file, _MOST_BYTES, 0).decode("utf-8", "replace")

    def end(self) -> None:
        """Keep what was recorded; the file is about to be closed."""
        self._ended = self.text
