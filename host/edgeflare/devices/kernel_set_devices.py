"""A device once for each kernel set that it offers, each with a profile of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from edgeflare.devices.device import connect
from edgeflare.devices.profile import EMULATED_ALL, Profile, without_all
from edgeflare.devices.profile_folders import profile_files
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.trust import KEPT_ONLY, Trust
from edgeflare_protos.kernel_sets import Kernels

_EMULATED: Final = "emulated-xnnpack"
"""The profile that is asked what emulated devices have here."""


def kernel_set_devices(name: str, trust: Trust = KEPT_ONLY) -> list[Profile]:
    """Return a profile for each kernel set that a device offers, in the order of `KERNEL_SETS`.

    Args:
        name: one that `names_all` recognizes.
        trust: the user's decision on profiles of the working directory.

    Raises:
        UserError: there is no such device.
        InfrastructureError: it does not come up.

    """
    base = _EMULATED if name == EMULATED_ALL else without_all(name)
    profile = find_profile(base, trust)
    with connect(profile) as device:
        offered = device.kernels
    if name == EMULATED_ALL:
        return [find_profile(_emulated(kernels), trust) for kernels in offered]
    return [replace(profile.with_kernels(kernels), name=f"{base}/{kernels}") for kernels in offered]


def _emulated(kernels: Kernels) -> str:
    """Return the name of the emulated device with a kernel set: for some there is a profile."""
    own = f"emulated-{kernels}"
    return own if own in profile_files() else f"{_EMULATED}/{kernels}"
