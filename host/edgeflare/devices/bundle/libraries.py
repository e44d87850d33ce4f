"""The system libraries that a bundle has to bring, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgeflare.devices.bundle.bundle_target import BundleTarget
from edgeflare.devices.bundle.elf import is_elf, needed_libraries
from edgeflare.errors import InfrastructureError


def system_libraries(
    binaries: Mapping[str, bytes], debian: Mapping[str, bytes], target: BundleTarget
) -> dict[str, str]:
    """Return what programs and libraries ask for that is not among themselves, and the loader.

    Args:
        binaries: the content of files by path; those that are no programs or libraries are passed
            over.
        debian: the content of Debian's files by path.
        target: what they are for.

    Returns:
        Paths of Debian's files by the names that libraries are asked for by.

    Raises:
        InfrastructureError: Debian's packages lack one of them.

    """
    offered = _offered(debian, target)
    own = {path.rpartition("/")[2] for path in binaries}
    found: dict[str, str] = {}
    wanted = [target.loader, *_needed(binaries.values())]
    while wanted:
        name = wanted.pop()
        if name in own or name in found:
            continue
        if name not in offered:
            raise InfrastructureError(
                f"Debian's packages do not hold {name}, which the agent needs"
            )
        found[name] = offered[name]
        wanted += _needed([debian[offered[name]]])
    return found


def _offered(debian: Mapping[str, bytes], target: BundleTarget) -> dict[str, str]:
    folders = (f"lib/{target.multiarch}/", f"usr/lib/{target.multiarch}/", "lib64/", "usr/lib64/")
    offered = {}
    for path in debian:
        folder, _, name = path.rpartition("/")
        if f"{folder}/" in folders and ".so" in name:
            offered[name] = path
    return offered


def _needed(contents: Iterable[bytes]) -> list[str]:
    return [name for content in contents if is_elf(content) for name in needed_libraries(content)]
