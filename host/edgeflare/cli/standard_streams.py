"""Standard output and error as commands find them: whatever is written to them, no command fails.

Who reads them may go away, as `head` does, or not be there at all, and a console may not know all
letters. None of that is a reason to lose the work of a command, or to end with another code.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys
from typing import Any, Final, TextIO

_OUTPUT: Final = 1
_ERROR: Final = 2

_HANDLER: Final = "edgeflare-shown"
"""The name by which Python's codecs know what becomes of a letter that an encoding lacks."""


def harden_streams() -> None:
    """Let standard output and error of this process take all text, also once nobody reads it.

    Letters that an encoding lacks become question marks. Bytes of file names that are no letters,
    which Python reads as half characters, are written as those bytes. What is closed
    from the start is opened to nowhere, so that no file of ours gets its number.
    """
    codecs.register_error(_HANDLER, _shown)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, so this one
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout = _tolerant(sys.stdout, _OUTPUT)
    sys.stderr = _tolerant(sys.stderr, _ERROR)


def finish() -> None:
    """Write what is left in the streams.

    Raises:
        OSError: it cannot be written, as on a full disk; it is dropped.

    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        # Else Python would try again as it ends, and say so at length.
        _to_nowhere(_OUTPUT)
        raise


class _TolerantFile(io.FileIO):
    """A file whose reader may go away: what is written after that goes nowhere.

    Nor does a message that cannot be written to standard error end anything.
    """

    def write(self, content: Any, /) -> int:
        """Write bytes, and return how many.

        Raises:
            OSError: standard output has no place, as on a full disk.

        """
        try:
            return super().write(content)
        except OSError as error:
            if self.fileno() == _OUTPUT and error.errno not in (errno.EPIPE, errno.EIO):
                raise
            _to_nowhere(self.fileno())
            return len(memoryview(content).cast("B"))


def _tolerant(before: TextIO | None, number: int) -> TextIO:
    """Return a stream as it was before; one to nowhere if there was none."""
    encoding, by_line, at_once = "utf-8", number == _ERROR, False
    if isinstance(before, io.TextIOWrapper):
        with contextlib.suppress(OSError):
            before.flush()
        encoding, by_line = before.encoding, before.line_buffering
        at_once = before.write_through  # PYTHONUNBUFFERED
    raw = _TolerantFile(number, "wb", closefd=False)
    file = raw if at_once else io.BufferedWriter(raw)
    return io.TextIOWrapper(file, encoding, _HANDLER, line_buffering=by_line, write_through=at_once)


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _shown(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":
        return bytes([ord(letter) - 0xDC00]), error.start + 1
    return "?", error.start + 1
