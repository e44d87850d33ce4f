"""The tracebacks of unexpected errors: written to a file, since a reply has one line."""

from __future__ import annotations

import os
import tempfile
import threading
import traceback

# A host that repeats what failed must not fill the device.
_MOST_BYTES = 1 << 20


class Tracebacks:
    """A file of this process, made when the first traceback comes. Safe with several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = ""

    def keep(self, error: BaseException) -> str:
        """Add an error's traceback, unless the file is full, and return where it is."""
        try:
            with self._lock:
                return self._written(traceback.format_exception(error))
        except OSError as refused:
            return f"no file, since none can be written ({refused.strerror})"

    def _written(self, lines: list[str]) -> str:
        if not self._name:
            descriptor, self._name = tempfile.mkstemp(prefix="edgeflare-agent-", suffix=".txt")
        else:
            descriptor = os.open(self._name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
            if file.tell() < _MOST_BYTES:
                file.writelines([*lines, "\n"])
        return self._name
