"""What is sent to a device so that an agent runs there: a bundle, or the agent's code alone."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from edgeflare.devices.bundle.build_bundle import build_bundle
from edgeflare.devices.profile import Profile
from edgeflare.devices.transports.transport_registry import transport
from edgeflare.errors import UserError
from edgeflare.models.agent_code import package_folder

_LAUNCHER = """\
#!/bin/sh
# Runs the agent with a Python that is on the device.
PYTHONPATH=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH
unset PYTHONHOME
exec "$EDGEFLARE_PYTHON" -m edgeflare_agent "$@"
"""


@dataclass(frozen=True, slots=True)
class Payload:
    """A `.tar.gz` that unpacks to a folder with an executable `agent`.

    Attributes:
        file: where it is.
        sha256: its hash, by which it is named on devices.

    """

    file: Path
    sha256: str


def agent_code(folder: Path) -> Payload:
    """Pack the agent's code, for a device that has a Python with a runtime.

    The same code gives the same file.

    Args:
        folder: where to put the file.

    """
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "agent", _LAUNCHER.encode(), 0o755)
        for package in ("edgeflare_agent", "edgeflare_protos"):
            root = package_folder(package)
            for path in sorted(root.rglob("*.py")):
                name = f"{package}/{path.relative_to(root).as_posix()}"
                _add(archive, name, path.read_bytes(), 0o644)
    content = gzip.compress(tar.getvalue(), mtime=0)
    file = folder / "agent-code.tar.gz"
    file.write_bytes(content)
    return Payload(file, hashlib.sha256(content).hexdigest())


def bundle(profile: Profile, machine: str) -> Payload:
    """Make the bundle for a machine, unless this host has made it before.

    Raises:
        UserError: there is none for it.
        InfrastructureError: what goes into it cannot be had.

    """
    built = build_bundle(target_of(profile, machine), profile.runtime)
    return Payload(built.path, built.sha256)


def target_of(profile: Profile, machine: str) -> str:
    """Return the bundle's target for a machine, as its kernel names it.

    Raises:
        UserError: there is no bundle for it; says what to do.

    """
    deployment = transport(profile.transport).deployment
    targets = deployment.bundle_targets if deployment else {}
    if machine in targets:
        return targets[machine]
    if machine.startswith(("armv6", "armv7", "armv8")):
        raise UserError(
            f"{profile.name}: a 32-bit system ({machine}), for which there is no bundle:"
            " tflite-runtime 2.14 is the last runtime with wheels for armv7l; install a 64-bit"
            " system, or that runtime in a Python 3.10 or 3.11 there and name it in the profile,"
            ' python = "/home/pi/runtime/bin/python"'
        )
    raise UserError(
        f"{profile.name}: its machine is {machine}, but bundles exist for"
        f" {', '.join(sorted(targets))}" + (f"; {deployment.without_bundle}" if deployment else "")
    )


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))
