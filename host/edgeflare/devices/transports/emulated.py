"""The transport "emulated": the agent as a local process, on kernels other than the host's.

Emulation is real: the kernels truly differ. Only the link is short.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_keys import PYTHON, START_TIMEOUT_SECONDS, ProfileKey, number
from edgeflare.devices.transports.child_agent import ChildAgent, ChildTransport
from edgeflare.devices.transports.transport import Endpoint, allow_delegate
from edgeflare.devices.transports.transport_plugin import Check, TransportPlugin
from edgeflare.errors import UserError
from edgeflare.models.agent_code import fork_server_socket, link_packages
from edgeflare_protos.kernel_sets import runtime_package

VARIABLES: Final = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""Where a user names drivers to Vulkan's loader, the newer one first."""

_SOFTWARE: Final = (
    "/usr/lib*/chromium*/vk_swiftshader_icd.json",
    "/usr/lib*/chromium*/swiftshader/vk_swiftshader_icd.json",
    "/opt/google/chrome*/vk_swiftshader_icd.json",
)
"""The description of SwiftShader, as packages of browsers install it."""

_INSTALLED: Final = ("/etc/vulkan/icd.d/*.json", "/usr/share/vulkan/icd.d/*.json")
"""The descriptions of drivers that Vulkan's loader finds by itself."""

_INSTALL: Final = "on Debian: apt-get install libvulkan1 chromium"


class EmulatedTransport(ChildTransport):
    """Runs `python -m edgeflare_agent` as a child process."""

    def start_agent(self, agent: ChildAgent) -> Endpoint:
        """Start the agent with this host's Python, or the one that the profile names."""
        packages = agent.folder / "packages"
        link_packages(packages)
        python = self.profile.python or sys.executable
        own = self.profile.python is None
        environment = _environment(packages, own=own)
        # Workers on a GPU have variables that those of the twin have not.
        shares = own and self.profile.kernels != "gpu"
        command = [python, "-m", "edgeflare_agent", *allow_delegate(self.profile)]
        try:
            with fork_server_socket() if shares else nullcontext() as server:
                return agent.start(command, environment, server)
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
    package = runtime_package(profile.kernels)
    if package is not None and profile.python is None and find_spec(package.module) is None:
        return f"no {package.distribution} in this environment: {package.mend}"
    return "here"


_MOST_LINK_DELAY_SECONDS = 60.0
"""A minute: beyond it, a link counts as lost."""

PLUGIN = TransportPlugin(
    create=EmulatedTransport,
    keys=(
        PYTHON,
        START_TIMEOUT_SECONDS,
        ProfileKey("link_delay_seconds", number(0, _MOST_LINK_DELAY_SECONDS), needs_trust=False),
    ),
    needs_trust=False,
    starts_device=True,
    status=_status,
    checks=lambda: [check_driver()],
)


def driver_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make Vulkan's loader take a driver in software.

    There are none where the user names one, or there is none: then the loader takes what it finds.

    Args:
        environment: the variables that are set.

    """
    named = any(environment.get(name) for name in VARIABLES)
    found = None if named else _software_driver()
    return {} if found is None else dict.fromkeys(VARIABLES, os.fspath(found))


def _software_driver() -> Path | None:
    """Return the description file of a driver in software that is installed here."""
    return _first(_SOFTWARE)


def _first(patterns: Iterable[str]) -> Path | None:
    found = (path for pattern in patterns for path in sorted(glob.glob(pattern)))
    return next(map(Path, found), None)


def check_driver() -> Check:
    """Look for what emulated-gpu needs."""
    title = "Vulkan driver, for emulated-gpu"
    variable = next((name for name in VARIABLES if os.environ.get(name)), "")
    driver = (
        os.environ[variable]
        if variable
        else os.fspath(_software_driver() or _first(_INSTALLED) or "")
    )
    if not any(Path(part).is_file() for part in driver.split(os.pathsep)):
        mend = f"{variable} names {driver}, which is no file: correct it" if variable else _INSTALL
        return Check(title, "", False, mend)
    return Check(title, driver if find_library("vulkan") else "", False, _INSTALL)
