"""The memory that a worker shares with its parent: current position, inputs, outputs.

It outlives the worker. So after a crash the parent knows exactly at which input it happened, and
keeps the answers that were already there.
"""

from __future__ import annotations

import mmap
import os
import tempfile

NOWHERE = -1
"""The position of a worker that runs no input."""

# Holds the mark; so wide that what follows is aligned.
_HEADER_BYTES = 64


def create() -> int:
    """Return the descriptor of a new, empty file for a batch."""
    return nameless_file("edgeflare-batch")


class SharedBatch:
    """A batch of inputs and outputs, mapped from a file that both processes have open.

    Attributes:
        memory: the mapping, which changes when `reserve` grows it.

    """

    memory: mmap.mmap

    def __init__(self, fd: int, input_bytes: int, output_bytes: int) -> None:
        self._fd = fd
        self._input_bytes = input_bytes
        self._output_bytes = output_bytes
        self._capacity = 0
        self.reserve(1)

    @property
    def capacity(self) -> int:
        """Inputs for which there is room."""
        return self._capacity

    def reserve(self, capacity: int) -> None:
        """Make room for at least `capacity` inputs; what was there is lost if it grows."""
        if capacity <= self._capacity:
            return
        self._capacity = capacity
        size = self.outputs_offset + capacity * self._output_bytes
        if os.fstat(self._fd).st_size < size:
            os.ftruncate(self._fd, size)
        self.memory = mmap.mmap(self._fd, size)
        # Native, so that it is written in one piece.
        self._mark = memoryview(self.memory)[:8].cast("q")

    @property
    def inputs_offset(self) -> int:
        """Where the first input begins."""
        return _HEADER_BYTES

    @property
    def outputs_offset(self) -> int:
        """Where the first output begins: behind the inputs, aligned for any dtype."""
        end = _HEADER_BYTES + self._capacity * self._input_bytes
        return -(-end // _HEADER_BYTES) * _HEADER_BYTES

    @property
    def mark(self) -> int:
        """The input that the worker is at, or NOWHERE."""
        return self._mark[0]

    @mark.setter
    def mark(self, index: int) -> None:
        self._mark[0] = index

    def write_inputs(self, payload: bytes | memoryview) -> None:
        """Lay the inputs in, from the first."""
        self.memory[_HEADER_BYTES : _HEADER_BYTES + len(payload)] = bytes(payload)

    def blank_output(self, index: int) -> None:
        """Set one output to zeros."""
        start = self.outputs_offset + index * self._output_bytes
        self.memory[start : start + self._output_bytes] = bytes(self._output_bytes)

    def read_outputs(self, count: int) -> bytes:
        """Return the first `count` outputs."""
        start = self.outputs_offset
        return self.memory[start : start + count * self._output_bytes]


def nameless_file(purpose: str) -> int:
    """Return the descriptor of a new, empty file, which ends with its last descriptor.

    Args:
        purpose: what the system's list of open files calls it.

    Raises:
        OSError: the system has no files in memory, and no temporary folder can be written to.

    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create(purpose)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
