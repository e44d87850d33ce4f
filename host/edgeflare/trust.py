"""The user's decision on what a document asks for, as a value that is passed to where it acts.

The Python functions whose code the user agreed to run are kept in the user's own configuration
folder, by the function's name, the place of its file, and its code, whichever document names them.
A document that somebody sent can neither bring an agreement nor use one for anything else: another
function of that file, the same code elsewhere, or code that has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare.python_callable import callable_files, is_callable
from edgeflare.regular_file import read_regular
from edgeflare.untrusted_text import printable

_SCHEMA = "edgeflare.trusted/v1"


@dataclass(frozen=True, slots=True)
class Trust:
    """What the user has agreed to, or is asked about.

    Attributes:
        answer: the user's answer to a request that was not agreed to before.
        keeps: whether a yes holds for later commands too, as long as the contents stay the same.

    """

    answer: Callable[[Request], bool]
    keeps: bool = False

    def allows(self, request: Request) -> bool:
        """Tell whether the user has agreed, now or before."""
        if request.complete and is_trusted(request.sha256):
            return True
        if not self.answer(request):
            return False
        if self.keeps and request.complete:
            with suppress(OSError):  # a home that cannot be written to: it is asked again
                keep(request.sha256, request.what)
        return True

    def require(self, request: Request) -> None:
        """Refuse what the user has not agreed to."""
        if not self.allows(request):
            raise UserError(
                f"{request.what}, which needs your trust: read the file, then add --trust "
                "(in Python and pytest, trust=True)"
            )


KEPT_ONLY = Trust(lambda _request: False)
"""Allows what the user agreed to before, and nothing else."""


def granted(trust: bool) -> Trust:
    """Return the decision of a caller in Python: yes to all for this call, or what is kept."""
    return Trust(lambda _request: True) if trust else KEPT_ONLY


@dataclass(frozen=True, slots=True)
class Request:
    """Code that would run, or an address that would be reached, because a document says so.

    Attributes:
        what: what the document does, as the beginning of a sentence: "pair.toml names the Python
            function net.py:predict".
        contents: whatever decides what would happen, by a name each: the document, and the code.
        complete: whether that is all that decides it; only then is the user's answer kept.

    """

    what: str
    contents: Mapping[str, bytes]
    complete: bool = True

    @property
    def sha256(self) -> str:
        """What the answer is kept by, in hexadecimal: it changes with any of the contents."""
        digests = {
            name: hashlib.sha256(content).hexdigest() for name, content in self.contents.items()
        }
        return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def decided_by_user(trust: bool) -> Trust:
    """Return the decision of the user of a command; it is kept for later commands.

    Args:
        trust: whether `--trust` was given; without it the user is asked, on a terminal only.

    """
    return Trust((lambda _request: True) if trust else _ask, keeps=True)


def _ask(request: Request) -> bool:
    """Ask on the terminal; no, where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"edgeflare: {printable(request.what)}\n")
    sys.stderr.write(f"  sha256 {request.sha256}\nDo you trust it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def store_path() -> Path:
    """Return the path of the file, beside the user's own profiles."""
    return Path(os.path.expanduser("~/.config/edgeflare/trusted.json"))


def is_trusted(sha256: str) -> bool:
    """Tell whether the user agreed to what has this sha256."""
    return sha256 in _read()


def kept_words() -> frozenset[str]:
    """Return the sentences that say what the user agreed to."""
    return frozenset(_read().values())


def keep(sha256: str, what: str) -> None:
    """Keep what the user agreed to, with a sentence that says what it was.

    Readers see the file before or after, never half of it; nobody else may read or write it.

    Raises:
        OSError: the file cannot be written.

    """
    path = store_path()
    document = {"schema": _SCHEMA, "trusted": {**_read(), sha256: what}}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read() -> dict[str, str]:
    """Return what is kept; nothing where the file is absent or damaged."""
    try:
        document = json_value(store_path().read_bytes())
        known = document["schema"] == _SCHEMA
        trusted = {str(sha256): str(what) for sha256, what in document["trusted"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return trusted if known else {}


_MOST_CODE_BYTES = 2**26
"""Most bytes of a file of code; a stranger's run may name any file."""


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
            f"code {os.path.abspath(file)}": read_regular(file, _MOST_CODE_BYTES)
            for file in callable_files(function)
        }
    except (OSError, UserError, ValueError):
        return None
    return (
        Request(_words(function), {"function": _placed(function).encode(), **code})
        if code
        else None
    )
