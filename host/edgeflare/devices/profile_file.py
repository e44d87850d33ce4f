"""One profile file, as its TOML says it."""

from __future__ import annotations

import sys
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 2**20
"""Of a profile, which may be a stranger's."""


def read_profile_file(path: Path) -> dict[str, object]:
    """Return what a profile file says; the values are not checked.

    Raises:
        UserError: it cannot be read, or is no TOML.

    """
    try:
        return tomllib.loads(read_regular(path, MOST_BYTES).decode())
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is not valid TOML: {error}") from None
