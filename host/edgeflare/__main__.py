"""`python -m edgeflare` is the `edgeflare` command."""

from __future__ import annotations

import sys

from edgeflare.cli import main
from edgeflare.cli.standard_streams import finish, harden_streams


def start() -> None:
    """Run the command line; where it works on a fleet, a parent watches it."""
    harden_streams()
    on_fleet = any(argument.partition("=")[0] == "--fleet" for argument in sys.argv)
    if sys.platform != "linux" or not on_fleet:
        _run()
        return
    from edgeflare.parent_process import watch_this_process  # noqa: PLC0415 - for this alone

    says_end = watch_this_process()
    try:
        _run()
    finally:
        says_end()


def _run() -> None:
    """Run a command, and write all that it printed before its exit code is said."""
    try:
        main()
    finally:
        ended = sys.exc_info()[1]
        try:
            finish()
        except OSError as error:
            if not (isinstance(ended, SystemExit) and ended.code == 3):
                sys.stderr.write(f"edgeflare: standard output: {error.strerror}\n")
            sys.exit(3)


if __name__ == "__main__":
    start()
