"""Names of devices with a kernel set behind them: `NAME/KERNELS`, and `NAME/all` for each of them.

`emulated-all` is each kernel set that an emulated device has on this host.
`NAME/all` is a name and no profile, since which kernel sets there are is known once the device is
asked.
"""

from __future__ import annotations

from typing import Final

from edgeflare_protos.kernel_sets import Kernels, is_kernel_set

EMULATED_ALL: Final = "emulated-all"

_ALL: Final = "all"


def split_kernels(name: str) -> tuple[str, Kernels | None]:
    """Return the name of a device, and the kernel set that is named behind it, if one is."""
    base, behind = _split(name)
    return (base, behind) if is_kernel_set(behind) else (name, None)


def names_all(name: str) -> bool:
    """Tell whether a name means every kernel set that a device offers."""
    return name == EMULATED_ALL or _split(name)[1] == _ALL


def without_all(name: str) -> str:
    """Return the name of the device itself."""
    return name.removesuffix(f"/{_ALL}")


def _split(name: str) -> tuple[str, str]:
    """Return what stands before and behind the last slash; of an address alone nothing behind."""
    base, separator, behind = name.rpartition("/")
    if not separator or not base or base.endswith(":/"):
        return name, ""
    return base, behind
