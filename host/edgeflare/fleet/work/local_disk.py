"""Whether a folder lies on a disk of this host: SQLite's log needs one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError

_NETWORK: Final = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "beegfs", "gpfs", "ncpfs"),
    }
)


def require_local_disk(path: Path, mounts: Path = Path("/proc/self/mounts")) -> None:
    """Refuse a folder on a network file system.

    Args:
        path: path of the folder, or of one that will be made.
        mounts: the file that lists what is mounted; where there is none, nothing is refused.

    """
    kind = file_system(path, mounts)
    if kind in _NETWORK:
        raise UserError(
            f"{path} lies on a network file system ({kind}), on which a run's journal does not"
            " work: name a folder on a disk of this host, with --out or XDG_CACHE_HOME"
        )


def file_system(path: Path, mounts: Path) -> str:
    """Return the kind of file system that a path lies on; empty where that is not known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        _, place, type_, *_ = line.split(" ")
        place = place.replace("\\040", " ")
        within = real == place or real.startswith(f"{place.rstrip('/')}/")
        if within and len(place) >= len(best):
            best, kind = place, type_
    return kind
