"""The versions that all hosts of a fleet have to have alike."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version

import edgeflare


def host_versions() -> dict[str, str]:
    """Return the versions of this host, by the name of what has them."""
    return {
        "Python": platform.python_version(),
        "Ray": version("ray"),
        "EdgeFlare": edgeflare.__version__,
    }


def version_difference(theirs: Mapping[str, str], mine: Mapping[str, str]) -> str:
    """Return in what another host differs, as the end of a sentence about it; empty for nothing.

    Args:
        theirs: the versions of the other host.
        mine: those of the host of the command.

    """
    for what, version_here in mine.items():
        if theirs.get(what) != version_here:
            return (
                f"has {what} {theirs.get(what)}, and the host of the command {version_here}:"
                " install the same on all hosts of a fleet"
            )
    return ""
