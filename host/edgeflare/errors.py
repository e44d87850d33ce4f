"""The two families of errors that a user meets, and their exit codes."""

from __future__ import annotations

import errno
from typing import Final

_OF_THE_PATH: Final = frozenset(
    {
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
    }
)
"""Errors of the system that say of a path that it is none; others are a disk's or a permission."""


class EdgeFlareError(Exception):
    """An error whose message is one line, written for the user."""

    exit_code: int = 3


class UserError(EdgeFlareError):
    """What was asked for cannot be done as it was said: what was wrong, and what to do (exit 2)."""

    exit_code = 2


class InfrastructureError(EdgeFlareError):
    """What was asked for is right, but a device, a process or a disk failed (exit 3)."""

    exit_code = 3


def kind_at_named_path(error: OSError) -> type[UserError | InfrastructureError]:
    """Return the family of an error of the system at a path that the user has named."""
    return UserError if error.errno in _OF_THE_PATH else InfrastructureError
