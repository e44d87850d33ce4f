"""The transport "emulated": the agent as a local process, on kernels other than the host's.

Emulation is real: the kernels truly differ. Only the link is short.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_keys import PYTHON, START_TIMEOUT_SECONDS, ProfileKey, number
from edgeflare.devices.transports.child_agent import ChildAgent, ChildTransport
from edgeflare.devices.transports.delegate import allow_delegate
from edgeflare.devices.transports.transport import Endpoint
from edgeflare.devices.transports.transport_plugin import TransportPlugin
from edgeflare.devices.transports.vulkan_driver import check_driver, driver_variables
from edgeflare.errors import UserError
from edgeflare.models.agent_code import link_packages


class EmulatedTransport(ChildTransport):
    """Runs `python -m edgeflare_agent` as a child process."""

    def start_agent(self, agent: ChildAgent) -> Endpoint:
        """Start the agent with this host's Python, or the one that the profile names."""
        packages = agent.folder / "packages"
        link_packages(packages)
        python = self.profile.python or sys.executable
        environment = _environment(packages, own=self.profile.python is None)
        try:
            command = [python, "-m", "edgeflare_agent", *allow_delegate(self.profile)]
            return agent.start(command, environment)
        except OSError as error:
            raise UserError(
                f'{self.profile.source}: python = "{python}": cannot be run: {error.strerror}'
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
    return {**environment, **driver_variables(environment)}


def _status(profile: Profile) -> str:
    """Return whether what the profile's kernels need is on this machine.

    What another Python than the host's has is not known before it is asked.
    """
    if profile.kernels == "gpu" and not (driver := check_driver()).found:
        return f"no Vulkan driver or loader on this machine: {driver.mend}"
    if profile.kernels == "micro" and profile.python is None and find_spec("tflite_micro") is None:
        return "no tflite-micro in this environment: pip install 'edgeflare[micro]'"
    return "here"


_MOST_LINK_DELAY_MS = 60_000.0
"""A minute: beyond it, a link counts as lost."""

PLUGIN = TransportPlugin(
    create=EmulatedTransport,
    keys=(
        PYTHON,
        START_TIMEOUT_SECONDS,
        ProfileKey("link_delay_ms", number(0, _MOST_LINK_DELAY_MS), needs_trust=False),
    ),
    needs_trust=False,
    starts_device=True,
    status=_status,
    checks=lambda: [check_driver()],
)
