"""Debian's Python, reduced to what a program without a terminal and a user needs."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping

from edgeflare.errors import InfrastructureError

_VERSION = re.compile(r"^usr/bin/python(3)\.(\d+)$")

# Of the standard library: what serves people, tests, other systems, or libraries left out.
_UNUSED = (
    "EXTERNALLY-MANAGED",
    "*.rst",
    "*.txt",
    "__phello__*",
    "_pydecimal.py",
    "_sysconfigdata__*",
    "config-3*",
    "curses/*",
    "dbm/*",
    "distutils/*",
    "ensurepip/*",
    "idlelib/*",
    "lib2to3/*",
    "pydoc_data/*",
    "sqlite3/*",
    "test/*",
    "*/test/*",
    "*/tests/*",
    "tkinter/*",
    "turtle*",
    "venv/*",
    "wsgiref/*",
    "xmlrpc/*",
    "lib-dynload/_codecs_*",
    "lib-dynload/_crypt.*",
    "lib-dynload/_ctypes_test.*",
    "lib-dynload/_curses*",
    "lib-dynload/_dbm.*",
    "lib-dynload/_hashlib.*",
    "lib-dynload/_sqlite3.*",
    "lib-dynload/_ssl.*",
    "lib-dynload/_test*",
    "lib-dynload/_tkinter.*",
    "lib-dynload/_uuid.*",
    "lib-dynload/_xx*",
    "lib-dynload/nis.*",
    "lib-dynload/ossaudiodev.*",
    "lib-dynload/readline.*",
    "lib-dynload/xx*",
)


def python_version(files: Mapping[str, bytes]) -> tuple[int, int]:
    """Return the version of the Python that is among Debian's files."""
    for path in files:
        if match := _VERSION.match(path):
            return int(match[1]), int(match[2])
    raise InfrastructureError("Debian's packages do not hold a Python where one was expected")


def python_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return program and standard library: Debian's paths by those below PYTHONHOME."""
    major, minor = python_version(files)
    library = f"usr/lib/python{major}.{minor}/"
    places = {"bin/python": f"usr/bin/python{major}.{minor}"}
    for path in files:
        if path.startswith(library):
            name = path.removeprefix(library)
            if not any(fnmatch.fnmatchcase(name, rule) for rule in _UNUSED):
                places[path.removeprefix("usr/")] = path
    return places
