"""Names for what a process leaves on a device, by which a later one can tell that it is stale."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
from contextlib import suppress
from pathlib import Path

_MACHINE_IDS = ("/etc/machine-id", "/proc/sys/kernel/random/boot_id")


def new_name() -> str:
    """Return a name that tells this host, this process and nothing else: HOST-PID-START-RANDOM."""
    pid = os.getpid()
    return f"{_host()}-{pid}-{_start_of(pid)}-{secrets.token_hex(4)}"


def is_stale(name: str) -> bool:
    """Tell whether a name was given by a process of this host and user that is no more.

    What other hosts left is theirs, or ends by itself.
    """
    host, _, rest = name.partition("-")
    pid, _, rest = rest.partition("-")
    start = rest.partition("-")[0]
    return host == _host() and pid.isdigit() and _start_of(int(pid)) != start


def _host() -> str:
    """Return what tells a host and user, and within it what shares its process numbers."""
    parts = [platform.node(), str(os.getuid())]
    for path in _MACHINE_IDS:
        with suppress(OSError):
            parts.append(Path(path).read_text(encoding="ascii").strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


def _start_of(pid: int) -> str:
    """Return when a process began, so that a number used again is another; empty if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _is_there(pid)
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _is_there(pid: int) -> str:
    """Return a word if there is such a process, where the system has no /proc."""
    try:
        os.kill(pid, 0)
    except OSError:
        return ""
    return "there"
