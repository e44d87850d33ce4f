"""The token without which nobody takes part in a cluster."""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError

MODE: Final = "RAY_AUTH_MODE"
TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_PATH: Final = "RAY_AUTH_TOKEN_PATH"  # noqa: S105 - likewise


def require_token(environment: MutableMapping[str, str], home: Path) -> None:
    """Refuse to work in a cluster that anybody may take part in.

    Args:
        environment: of this process, which Ray reads.
        home: the folder of the user, which may hold `.ray/auth_token`.

    Raises:
        UserError: token authentication is off, or there is no token.

    """
    if environment.get(MODE) != "token":
        raise UserError(
            f"a fleet works with token authentication only: set {MODE}=token here and wherever"
            " `ray start` runs, and the same token on each host (docs/fleet.md)"
        )
    file = Path(environment.get(TOKEN_PATH) or home / ".ray" / "auth_token")
    if not environment.get(TOKEN) and not (file.is_file() and file.read_bytes().strip()):
        raise UserError(
            f"there is no token for the cluster: put one into {file}, the same on each host, with"
            f" `ray get-auth-token --generate`, or set {TOKEN}"
        )


def make_token(environment: MutableMapping[str, str]) -> None:
    """Set a new token for a cluster of this process alone."""
    environment[MODE] = "token"
    environment[TOKEN] = secrets.token_hex(32)
    environment.pop(TOKEN_PATH, None)
