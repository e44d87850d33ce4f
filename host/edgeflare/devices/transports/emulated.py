"""The transport "emulated": the agent as a local process, on kernels other than the host's.

Emulation is real: the kernels truly differ. Only the link is short.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from edgeflare.devices.transports.child_agent import ChildAgent, ChildTransport
from edgeflare.devices.transports.delegate import allow_delegate
from edgeflare.devices.transports.transport import Endpoint
from edgeflare.errors import UserError
from edgeflare.models.agent_code import link_packages


class EmulatedTransport(ChildTransport):
    """Runs `python -m edgeflare_agent` as a child process."""

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
