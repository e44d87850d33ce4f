"""A lease for a device that cannot be shared: two campaigns on one would measure each other."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote

from edgeflare.errors import InfrastructureError, UserError


@contextmanager
def lease(device: str) -> Iterator[None]:
    """Hold a device for as long as the context is open.

    The lease is a lock that the kernel takes back when its process ends, however it ends.

    Args:
        device: what tells it from all others, for example "grpc://127.0.0.1:50051".

    Raises:
        UserError: this process holds it already.
        InfrastructureError: another campaign of this user holds it, or the lease's file is not the
            user's own.

    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock_file(folder / f"{quote(device, safe='')}.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            if holder == str(os.getpid()):
                raise UserError(
                    f"two of the devices named are the same one: {device}; name it once"
                ) from None
            raise InfrastructureError(
                f"{device} is in use by another campaign (process {holder or '?'}): wait until"
                " that has ended, or name another device"
            ) from None
        except OSError:
            pass  # a file system without locks, as some networks have
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield


def _lock_file(path: Path) -> IO[str]:
    """Open a lease's file; one by which another file would be written to is refused."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    else:
        facts = os.fstat(descriptor)
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1:
            return os.fdopen(descriptor, "r+")
        os.close(descriptor)
    raise InfrastructureError(f"{path} is a link, or another user's: remove it")


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(cache)) / "edgeflare" / "leases"
