"""What an accelerator logs while it compiles a model: nothing else tells of driver and nodes."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

_ADAPTER = re.compile(r"Selected adapter: (.+)")
_COUNTS = re.compile(r"(\d+) operations will run on the GPU, and the remaining (\d+) operations")
_UNSUPPORTED = re.compile(r"operations are not supported by GPU delegate:\n((?:\w+: .*\n)+)")
_LACKING = re.compile(r"Warning: (Vulkan .* required)\.")

_MOST_BYTES = 1 << 20
"""Read of a log; one of a model with hundreds of operators has some kilobytes."""

_NO_DRIVER = (
    "finds no driver that it can use{lacking}: install the Vulkan driver of the device, or for a"
    " GPU in software on Debian: apt-get install libvulkan1 chromium"
)


@contextmanager
def recorded_log() -> Iterator[AcceleratorLog]:
    """Record what is written to stderr by whatever language; it is lost to others."""
    with tempfile.TemporaryFile() as file:
        log = AcceleratorLog(file)
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            log.end()


class AcceleratorLog:
    """A recorded log; what it says is read once the model is compiled or refused.

    Attributes:
        adapter: what the accelerator computes on, as its driver says; empty if that is not logged.
        accelerated: nodes that it took of a model that it took in part.

    """

    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        self._text: str | None = None

    @property
    def adapter(self) -> str:
        """See the class."""
        found = _ADAPTER.search(self._read())
        return found.group(1).strip() if found else ""

    @property
    def accelerated(self) -> int:
        """See the class."""
        found = _COUNTS.search(self._read())
        return int(found.group(1)) if found else 0

    def refusal(self, message: str) -> str:
        """Return why a model was refused, as what follows the accelerator's name."""
        text = self._read()
        if "No adapters found" in text:
            lacking = _LACKING.search(text)
            return _NO_DRIVER.format(lacking=f" ({lacking.group(1)})" if lacking else "")
        if "No compiler plugin found" in text:
            return (
                "finds no NPU: install its vendor's compiler plugin and dispatch library for LiteRT"
            )
        if "dynamic-sized tensors" in text:
            return (
                "takes no model with tensors that are sized while it runs, as by SHAPE before"
                " RESHAPE: convert it with a fixed batch size"
            )
        if found := _UNSUPPORTED.search(text):
            operators = "; ".join(found.group(1).split("\n")[:-1])
            counts = _COUNTS.search(text)
            taken, left = map(int, counts.groups()) if counts else (0, 0)
            return (
                f"takes {taken} of {taken + left} nodes, and not {operators.strip(' .')}: set"
                " fallback = true in the device's profile to run the others on the CPU"
            )
        last = message.strip().split("└")[-1]
        return f"refuses it: {' '.join(last.split()) or 'no reason given'}"

    def end(self) -> None:
        """Keep what was recorded; the file is about to be closed."""
        self._text = self._read()

    def _read(self) -> str:
        if self._text is not None:
            return self._text
        return os.pread(self._file.fileno(), _MOST_BYTES, 0).decode("utf-8", "replace")
