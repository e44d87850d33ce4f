"""The transport "emulated": the agent as a local process, on kernels other than the host's.

Emulation is real: the kernels truly differ. Only the link is short.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from edgeflare.devices.profile import Profile
from edgeflare.devices.transports.child_agent import ChildAgent
from edgeflare.devices.transports.delegate import allow_delegate
from edgeflare.devices.transports.transport import Endpoint, Transport
from edgeflare.errors import UserError
from edgeflare.models.agent_code import link_packages


class EmulatedTransport(Transport):
    """Runs `python -m edgeflare_agent` as a child process."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._agent: ChildAgent | None = None
        self._last_words = ""

    def open(self) -> Endpoint:
        """Start the agent, and wait until it is ready."""
        self._last_words = ""
        self._agent = ChildAgent(self._profile.name)
        try:
            return self._start(self._agent)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the agent, and remove its folder."""
        if self._agent is not None:
            self._last_words = self._agent.end()
            self._agent = None

    def last_words(self) -> str:
        """Return how the agent's process ended and the last line of its log, if it did end."""
        return self._last_words if self._agent is None else self._agent.last_words()

    def _start(self, agent: ChildAgent) -> Endpoint:
        packages = agent.folder / "packages"
        link_packages(packages)
        python = self._profile.python or sys.executable
        environment = _environment(packages, own=self._profile.python is None)
        try:
            command = [python, "-m", "edgeflare_agent", *allow_delegate(self._profile)]
            return agent.start(command, environment)
        except OSError as error:
            raise UserError(
                f'{self._profile.source}: python = "{python}": cannot be run: {error.strerror}'
            ) from None


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
