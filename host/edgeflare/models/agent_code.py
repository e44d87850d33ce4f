"""What of this installation an agent on the same machine uses: its code, and the fork server."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from edgeflare.errors import InfrastructureError
from edgeflare_agent.runtime import fork_server_socket

__all__ = ["fork_server_socket", "link_packages", "package_folder"]


def link_packages(folder: Path) -> None:
    """Fill a folder through which any interpreter finds this installation's agent.

    And nothing else of the host's site-packages, whose numpy is not that interpreter's.
    """
    folder.mkdir()
    for package in ("edgeflare_agent", "edgeflare_protos"):
        (folder / package).symlink_to(package_folder(package), target_is_directory=True)


def package_folder(package: str) -> Path:
    """Return where a package of this installation lies.

    Raises:
        InfrastructureError: it is not installed.

    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InfrastructureError(f"{package} is not installed; install edgeflare again")
    return Path(spec.origin).parent
