"""The Python functions whose code the user agreed to run, whichever document names them.

An agreement is kept in the user's own configuration folder, by the function's name, the place of
its file, and its code. A document that somebody sent can neither bring one nor use one for anything
else: another function of that file, the same code elsewhere, or code that has changed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from edgeflare.errors import UserError
from edgeflare.python_callable import callable_files, is_callable
from edgeflare.regular_file import read_regular
from edgeflare.trust import Request, is_trusted, keep, kept_words

_MOST_BYTES = 2**26
"""Of a file of code; a stranger's run may name any file."""


def is_agreed(function: str) -> bool:
    """Tell whether the user agreed to run this function, with the code that it has now."""
    request = _request(function)
    return request is not None and is_trusted(request.sha256)


def has_changed(function: str) -> bool:
    """Tell whether the user agreed to run this function with other code than it has now."""
    return not is_agreed(function) and _words(function) in kept_words()


def keep_agreed(function: str) -> None:
    """Keep that the user agreed to run a function, where its files are known.

    A home that cannot be written to is no error: it is asked again.
    """
    request = _request(function)
    if request is not None and not is_trusted(request.sha256):
        with suppress(OSError):
            keep(request.sha256, request.what)


def _words(function: str) -> str:
    return f"the Python function {_placed(function)}"


def _placed(function: str) -> str:
    """Return a function with the absolute path of its file; of a module, with the module's name."""
    module, _, name = function.rpartition(":")
    return f"{os.path.abspath(module)}:{name}" if module.endswith(".py") else function


def _request(function: str) -> Request | None:
    """Return the request for a function's code; None where its files are not known or readable."""
    if not is_callable(function):
        return None
    try:
        code = {
            f"code {os.path.abspath(file)}": read_regular(file, _MOST_BYTES)
            for file in callable_files(function)
        }
    except (OSError, UserError, ValueError):
        return None
    return (
        Request(_words(function), {"function": _placed(function).encode(), **code})
        if code
        else None
    )
