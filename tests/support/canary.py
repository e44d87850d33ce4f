"""A canary: things that nothing may execute, read or connect to, and whether something did."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_watching: list[Canary] = []


class Canary:
    """A folder of bait and a port that listens.

    Attributes:
        folder: whatever is executed writes here.
        secret: a file that nothing may open.
        port: a port on loopback that nothing may connect to.

    """

    def __init__(self, folder: Path, server: socket.socket) -> None:
        self.folder = folder
        self.secret = folder / "secret.png"
        self.secret.write_bytes(b"a secret")
        self.port = int(server.getsockname()[1])
        self._server = server
        self._opened: list[str] = []

    @property
    def code(self) -> str:
        """Python that shows that it ran; it also classifies, as an original has to."""
        return (
            f"open({str(self.folder / 'executed')!r}, 'w').close()\n"
            "import numpy as np\n"
            "def predict(image):\n"
            f"    open({str(self.folder / 'executed')!r}, 'w').close()\n"
            "    return np.arange(10, dtype=np.float32)[None] + image.mean()\n"
        )

    def program(self, path: Path) -> Path:
        """Write a program that shows that it ran."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{self.folder}/executed'\n")
        path.chmod(0o755)
        return path

    def opened(self, path: Any) -> None:
        if isinstance(path, (str, bytes)) and Path(path if isinstance(path, str) else "") == (
            self.secret
        ):
            self._opened.append(str(path))

    def harm(self) -> list[str]:
        """What was executed, opened or connected to."""
        harm = [f"opened {path}" for path in self._opened]
        if (self.folder / "executed").exists():
            harm.append("executed")
        try:
            self._server.accept()[0].close()
            harm.append("connected")
        except BlockingIOError:
            pass
        return harm


@contextmanager
def canary(folder: Path) -> Iterator[Canary]:
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        one = Canary(folder, server)
        _watching.append(one)
        try:
            yield one
        finally:
            _watching.remove(one)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what this process opens; Python calls this for each file."""
    if event in ("open", "sqlite3.connect"):
        name = arguments[0]
        if isinstance(name, str) and name.startswith("file:"):  # as SQLite is told
            name = unquote(urlsplit(name).path)
        for one in _watching:
            one.opened(name)


sys.addaudithook(_hear)
