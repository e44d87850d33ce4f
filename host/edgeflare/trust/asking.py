"""The decision of the user who types a command: `--trust`, or a yes on a terminal."""

from __future__ import annotations

import sys

from edgeflare.trust.request import Request
from edgeflare.trust.trust import Trust
from edgeflare.untrusted_text import printable


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
