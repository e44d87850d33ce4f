"""Names for what a process leaves on a device, by which a later one can tell that it is stale."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
from contextlib import suppress
from pathlib import Path

_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def new_name() -> str:
    """Return a name that tells this process and no other: HOST-BOOT-PID-START-RANDOM."""
    return f"{_own()}{secrets.token_hex(4)}"


def is_own(name: str) -> bool:
    """Tell whether this very process gave a name."""
    return name.startswith(_own())


def is_stale(name: str) -> bool:
    """Tell whether a name was given by a process of this host and user that is no more.

    What other hosts left is theirs, or ends by itself.
    """
    host, boot, pid, start = [*name.split("-"), "", "", ""][:4]
    if host != _host() or not pid.isdigit():
        return False
    return boot != _boot() or _start_of(int(pid)) != start


def _own() -> str:
    pid = os.getpid()
    return f"{_host()}-{_boot()}-{pid}-{_start_of(pid)}-"


def _host() -> str:
    """Return what tells a host and user, and within it what shares its process numbers.

    Those of a container are its own; by its name and its machine's it may be like one beside it.
    """
    parts = [platform.node(), str(os.getuid()), _text(_MACHINE_ID) or _text(_BOOT_ID)]
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return _digest(" ".join(parts))[:12]


def _boot() -> str:
    """Return what tells one start of the host from the next, after which none of them lives."""
    return _digest(_text(_BOOT_ID))[:6]


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii").strip()
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
