"""`python -m edgeflare` is the `edgeflare` command."""

from __future__ import annotations

import sys

from edgeflare.cli import main


def start() -> None:
    """Run the command line; where it works on a fleet, a parent watches it."""
    on_fleet = any(one.partition("=")[0] == "--fleet" for one in sys.argv)
    if sys.platform != "linux" or not on_fleet:
        main()
        return
    from edgeflare.cli.watched_process import watch_this_process  # noqa: PLC0415 - for this alone

    says_end = watch_this_process()
    try:
        main()
    finally:
        says_end()


if __name__ == "__main__":
    start()
