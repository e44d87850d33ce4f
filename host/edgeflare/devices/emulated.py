"""The transport "emulated": the agent as a local process, on kernels other than the host's.

Emulation is real: the kernels truly differ. Only the link is short.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.profile import Profile
from edgeflare.devices.scratch import ScratchFolder
from edgeflare.devices.transport import Endpoint, Transport
from edgeflare.errors import InfrastructureError, UserError

READY_SECONDS = 30.0
"""From start to the ready line. A cold start takes about 1 s, but ten when CI is loaded."""

STOP_SECONDS = 5.0
"""From closed stdin to the end of the process. It has workers to end, which takes milliseconds."""


class EmulatedTransport(Transport):
    """Runs `python -m edgeflare_agent` as a child that ends with this process.

    The child has a session of its own, so that a Ctrl-C at the terminal reaches the host alone,
    which then ends its run in order. All that it writes lies in one temporary folder: its model
    store, its log, its token (the port is on loopback, but other users live there too).
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: ScratchFolder | None = None
        self._last_words = ""

    def open(self) -> Endpoint:
        """Start the agent, and wait until it is ready."""
        self._last_words = ""
        self._folder = ScratchFolder()
        try:
            token = secrets.token_urlsafe()
            self._process = self._start(self._folder.path, token)
            return Endpoint(f"127.0.0.1:{self._wait_until_ready()}", token=token)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the agent, with force where it must be, and remove its folder."""
        if self._process is not None:
            _stop(self._process)
            self._last_words = self.last_words() if self._process.returncode else ""
            self._process = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def last_words(self) -> str:
        """Return how the agent's process ended and the last line of its log, if it did end."""
        if self._process is None:
            return self._last_words
        code = self._process.poll()
        if code is None:
            return ""
        return f"its process {_ending(code)}{self._last_line()}"

    def _start(self, folder: Path, token: str) -> subprocess.Popen[bytes]:
        _link_packages(folder / "packages")
        (folder / "token").write_text(token)
        python = self._profile.python or sys.executable
        # fmt: off
        command = [
            python, "-m", "edgeflare_agent",
            "--host", "127.0.0.1", "--port", "0",
            "--store", str(folder / "store"),
            "--token-file", str(folder / "token"),
            "--exit-with-stdin",
        ]
        # fmt: on
        try:
            with open(folder / "log", "wb") as log:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=folder,  # not the user's, whose files `-m` would import as modules
                    env=_environment(folder / "packages", own=self._profile.python is None),
                    start_new_session=True,
                )
        except OSError as error:
            raise UserError(
                f'{self._profile.source}: python = "{python}": cannot be run: {error.strerror}'
            ) from None

    def _wait_until_ready(self) -> int:
        """Read the line that says on which port the agent listens."""
        assert self._process is not None and self._process.stdout is not None  # noqa: S101, PT018
        stdout = self._process.stdout.fileno()
        deadline = time.monotonic() + READY_SECONDS
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise InfrastructureError(
                    f"{self._profile.name}: the agent was not ready within {READY_SECONDS:g} s"
                    f"{self._last_line()}"
                )
            part = os.read(stdout, 4096)
            if not part:
                code = self._process.wait()
                # Who was killed may be started again; who gave up would give up again.
                error = DeviceLost if code < 0 else InfrastructureError
                raise error(
                    f"{self._profile.name}: the agent did not start: its process"
                    f" {_ending(code)}{self._last_line()}"
                )
            line += part
        try:
            return int(json.loads(line)["port"])
        except (ValueError, KeyError, TypeError):
            raise InfrastructureError(
                f"{self._profile.name}: the agent printed {line[:80]!r} where its ready line"
                " was expected"
            ) from None

    def _last_line(self) -> str:
        if self._folder is None:
            return ""
        log = (self._folder.path / "log").read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        return f"; it said: {lines[-1]}" if lines else ""


def _link_packages(folder: Path) -> None:
    """Fill a folder through which any interpreter finds this installation's agent.

    And nothing else of the host's site-packages, whose numpy is not that interpreter's.
    """
    folder.mkdir()
    for package in ("edgeflare_agent", "edgeflare_protos"):
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise InfrastructureError(f"{package} is not installed; install edgeflare again")
        (folder / package).symlink_to(Path(spec.origin).parent, target_is_directory=True)


def _environment(packages: Path, *, own: bool) -> dict[str, str]:
    """Return the child's environment; the host's Python settings are for the host's Python only."""
    environment = dict(os.environ)
    paths = [str(packages)]
    if own:
        inherited = environment.get("PYTHONPATH", "").split(os.pathsep)
        paths += [os.path.abspath(path) for path in inherited if path]
    else:
        environment.pop("PYTHONHOME", None)
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process.stdout.close()


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
