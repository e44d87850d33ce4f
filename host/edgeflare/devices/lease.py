"""A lease for a device that cannot be shared: two campaigns on one would measure each other.

What a process leaves on a device has a name, by which a later one can tell that it is stale.

A killed command's lease is taken over by its secret, and not by the word of the next one that the
former has ended: containers may have the same name, user and process numbers, and only the user's
own file tells them apart.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import platform
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final
from urllib.parse import quote

from edgeflare.errors import InfrastructureError, UserError
from edgeflare_protos.limits import LEAST_SECRET_CHARACTERS, MOST_TOKEN_CHARACTERS

_LONGEST_NAME: Final = 200
"""Characters of a device in the name of a file; file systems bound names to 255 bytes."""


class LocalLease:
    """A device that this process has, among those of its user on this host.

    Its file also keeps the secret by which the device's agent knows this process: should the
    process be killed, the next one may take over what it had there.

    Attributes:
        former_secret: secret of a process that had the device before and is no more; empty if none
            left one.

    """

    def __init__(self, file: IO[str], *, locked: bool) -> None:
        """Write down who has the device.

        Args:
            file: the lease's file.
            locked: whether the file system has locks, so that no other process has it.

        """
        self._file = file
        file.seek(0)
        _, _, kept = file.read().partition("\n")
        name, _, secret = kept.strip().partition(" ")
        # A file system that several hosts share may have locks that hold on one host alone.
        ended = is_stale(name) or (locked and is_own(name))
        # One that is none would have the agent refuse every request that shows it.
        self.former_secret = secret if ended and _is_secret(secret) else ""
        self._write(kept if self.former_secret else "")

    def keep(self, secret: str) -> None:
        """Keep the secret that the agent now knows this process by."""
        self._write(f"{new_name()} {secret}\n")

    def forget(self) -> None:
        """Keep no secret any longer: what the process had there was given back."""
        self._write("")

    def _write(self, kept: str) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"{os.getpid()}\n{kept}" if kept else str(os.getpid()))
        self._file.flush()


@contextmanager
def lease(device: str) -> Iterator[LocalLease]:
    """Hold a device, among the processes of this user on this host, while the context is open.

    The lease is a lock that the kernel takes back when its process ends, however it ends. Other
    hosts and users are kept out by the device's agent: see `AgentLease`.

    Args:
        device: what tells it from all others, for example "grpc://127.0.0.1:50051".

    Raises:
        UserError: this process holds it already.
        InfrastructureError: another campaign of this user holds it, or the lease's file is not the
            user's own, or cannot be written.

    """
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(os.path.expanduser(cache)) / "edgeflare" / "leases"
    with _lock_file(folder / _file_name(device)) as file:
        locked = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().partition("\n")[0].strip()
            if holder == str(os.getpid()):
                raise UserError(
                    f"two of the devices named are the same one: {device}; name it once"
                ) from None
            named = holder if holder.isdecimal() else "?"
            raise InfrastructureError(
                f"{device} is in use by another campaign (process {named}): wait until"
                " that has ended, or name another device"
            ) from None
        except OSError:
            locked = False  # a file system without locks, as some networks have
        yield LocalLease(file, locked=locked)


def _file_name(device: str) -> str:
    """Return the name of a lease's file, which every file system can have."""
    told = os.fsencode(device)
    name = quote(told, safe="")
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(told).hexdigest()
    return f"{name}.lock"


def _lock_file(path: Path) -> IO[str]:
    """Open a lease's file; one by which another file would be written to is refused."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise InfrastructureError(
                f"{path} cannot be written, which keeps other commands off the device"
                f" ({error.strerror}): make that folder writable, or name another one with"
                " XDG_CACHE_HOME"
            ) from None
    else:
        facts = os.fstat(descriptor)
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1:
            # Whatever a disk that was full or a crash has left in it, the next command writes anew.
            return os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace")
        os.close(descriptor)
    raise InfrastructureError(f"{path} is a link, or another user's: remove it")


def _is_secret(text: str) -> bool:
    """Tell whether an agent would take a text for the secret of a lease."""
    length_fits = LEAST_SECRET_CHARACTERS <= len(text) <= MOST_TOKEN_CHARACTERS
    return length_fits and text.isascii() and text.isprintable()


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
