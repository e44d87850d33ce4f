"""This machine as a device with a shell, for what a real link would only make slower."""

# ruff: noqa: ARG002 - the arguments of methods are those of the seam

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeflare.devices.remote.remote_shell import Output, Remote, RemoteLost


class LoopbackRemote(Remote):
    """This machine, as a device."""

    place = device = "here"

    def __init__(self, shell: list[str] | None = None) -> None:
        self._shell = shell or ["sh"]
        self.is_lost = False

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, script: str, seconds: float, command: str) -> Output:
        if self.is_lost:
            raise RemoteLost("here: lost", command)
        done = subprocess.run(
            [*self._shell, "-c", script], capture_output=True, text=True, timeout=300, check=False
        )
        return Output(done.stdout, done.stderr, done.returncode)

    def push(self, file: Path, target: str, seconds: float) -> None:
        shutil.copy(file, target)

    @contextmanager
    def forward(self, port: int) -> Iterator[int]:
        yield port

    def failure_reason(self) -> str:
        return ""
