"""The two families of errors that a user meets, and their exit codes."""

from __future__ import annotations


class EdgeFlareError(Exception):
    """An error whose message is one line, written for the user."""

    exit_code: int = 3


class UserError(EdgeFlareError):
    """What was asked for cannot be done as it was said: what was wrong, and what to do (exit 2)."""

    exit_code = 2


class InfrastructureError(EdgeFlareError):
    """What was asked for is right, but a device, a process or a disk failed (exit 3)."""

    exit_code = 3
