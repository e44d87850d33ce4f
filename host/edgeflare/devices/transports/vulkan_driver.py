"""The Vulkan driver of emulated devices with a GPU: one in software, where this machine has it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
from ctypes.util import find_library
from pathlib import Path
from typing import Final

from edgeflare.devices.program_check import Check

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


def driver_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make Vulkan's loader take a driver in software.

    There are none where the user names one, or there is none: then the loader takes what it finds.

    Args:
        environment: the variables that are set.

    """
    named = any(environment.get(name) for name in VARIABLES)
    found = None if named else software_driver()
    return {} if found is None else dict.fromkeys(VARIABLES, os.fspath(found))


def software_driver() -> Path | None:
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
        else os.fspath(software_driver() or _first(_INSTALLED) or "")
    )
    if not any(Path(one).is_file() for one in driver.split(os.pathsep)):
        mend = f"{variable} names {driver}, which is no file: correct it" if variable else _INSTALL
        return Check(title, "", False, mend)
    return Check(title, driver if find_library("vulkan") else "", False, _INSTALL)
