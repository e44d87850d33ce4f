"""The traceback of an unexpected error, kept in a file for a bug report."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
import traceback
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.regular_file import open_regular
from edgeflare_protos import __version__

_KEPT = 20
"""The newest files that stay: a command that fails in a loop must not fill the disk."""

_PREFIX = "traceback-"
_FIRST = "edgeflare "
"""What a file begins with: other programs' files may have such names in the temporary folder."""

_NAME = re.compile(_PREFIX + r"\d{8}-\d{6}-[a-z0-9_]{8}\.txt", re.ASCII)
"""Name of a report's file: the time, and what `mkstemp` puts behind it."""


def keep_traceback(error: BaseException) -> str:
    """Write an error's traceback into the user's state folder, and return where it is.

    That is `$XDG_STATE_HOME/edgeflare`, else `~/.local/state/edgeflare`; the folder for temporary
    files if it cannot be written to. Only the user can read the file. Where not even that works,
    as on a full disk, the words returned say so.
    """
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    for folder in (Path(state).absolute() / "edgeflare", Path(tempfile.gettempdir())):
        try:
            return str(_written(folder, error))
        except OSError as refused:
            reason = refused.strerror
    return f"no file, since none can be written ({reason})"


def _written(folder: Path, error: BaseException) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    older = sorted(filter(_is_ours, folder.glob(_PREFIX + "*.txt")))
    for path in older[: 1 - _KEPT]:
        path.unlink(missing_ok=True)
    began = time.strftime("%Y%m%d-%H%M%S-")
    # A new file each time, of a name that nobody could have put a link in place of.
    descriptor, name = tempfile.mkstemp(prefix=_PREFIX + began, suffix=".txt", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{_FIRST}{__version__}, Python {platform.python_version()}\n")
            file.write(f"{' '.join(map(repr, sys.argv))}\n\n")
            file.writelines(traceback.format_exception(error))
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _is_ours(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            first = file.read(len(_FIRST))
    except (OSError, UserError):
        return False
    # A kill, or a full disk, has left one empty.
    return first == _FIRST.encode() or (not first and _NAME.fullmatch(path.name) is not None)
