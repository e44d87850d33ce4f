"""What a bundle can be made for."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.errors import UserError
from edgeflare.suggestion import suggestion


@dataclass(frozen=True, slots=True)
class BundleTarget:
    """A kind of device.

    Attributes:
        name: as the user says it.
        machine: the architecture as kernels and wheels name it.
        debian: as Debian names it.
        loader: file name of glibc's dynamic loader there.

    """

    name: str
    machine: str
    debian: str
    loader: str

    @property
    def multiarch(self) -> str:
        """Return the folder of Debian's libraries for it."""
        return f"{self.machine}-linux-gnu"


_AARCH64 = ("aarch64", "arm64", "ld-linux-aarch64.so.1")
_X86_64 = ("x86_64", "amd64", "ld-linux-x86-64.so.2")

TARGETS = {
    "linux-aarch64": BundleTarget("linux-aarch64", *_AARCH64),
    "linux-x86_64": BundleTarget("linux-x86_64", *_X86_64),
    # The same files: its kernel is Linux, and the bundle brings all that lies above the kernel.
    "android-arm64": BundleTarget("android-arm64", *_AARCH64),
}


def find_target(name: str) -> BundleTarget:
    """Return the target of that name.

    Raises:
        UserError: there is none.

    """
    if name not in TARGETS:
        raise UserError(
            f'unknown target "{name}"{suggestion(name, TARGETS)}; expected one of'
            f" {', '.join(TARGETS)}"
        )
    return TARGETS[name]


def native_target(machine: str) -> BundleTarget:
    """Return a target whose programs run on a machine of that architecture.

    Raises:
        UserError: none do.

    """
    names = {"arm64": "aarch64", "AMD64": "x86_64"}
    for target in TARGETS.values():
        if target.machine == names.get(machine, machine):
            return target
    raise UserError(
        f"bundles cannot be made on {machine}; make it on an x86_64 or aarch64 machine with Debian"
        " and copy the file"
    )
