"""`python -m edgeflare` is the `edgeflare` command."""

from __future__ import annotations

import gc
import sys


def start() -> None:
    """Run the command line; where it works on a fleet, a parent watches it."""
    _require_host()
    # Modules are no garbage: to look for some among them took a fifth of a command that does
    # nothing. Once the command's own are imported, `LazyCommand` lets it be looked for.
    gc.disable()
    from edgeflare.cli.standard_streams import harden_streams  # noqa: PLC0415 - Linux alone

    harden_streams()
    on_fleet = any(argument.partition("=")[0] == "--fleet" for argument in sys.argv)
    if not on_fleet:
        _run()
        return
    from edgeflare.parent_process import watch_this_process  # noqa: PLC0415 - for this alone

    says_end = watch_this_process()
    try:
        _run()
    finally:
        says_end()


def _require_host() -> None:
    """End in one line where the host is none: another system than Linux, or too old a Python."""
    refused = ""
    if sys.version_info < (3, 10):  # noqa: UP036 - pip refuses, but a checkout needs no pip
        version = ".".join(map(str, sys.version_info[:3]))
        refused = f"Python 3.10 or newer runs EdgeFlare, and this is {version}"
    elif sys.platform != "linux":
        refused = f"the host has to be Linux, also in a container, and this is {sys.platform}"
    if refused:
        sys.stderr.write(f"edgeflare: {refused}\n")
        sys.exit(2)


def _run() -> None:
    """Run a command, and write all that it printed before its exit code is said."""
    from edgeflare.cli import main  # noqa: PLC0415 - Linux alone
    from edgeflare.cli.standard_streams import finish  # noqa: PLC0415 - likewise

    try:
        main()
    finally:
        ended = sys.exc_info()[1]
        gc.freeze()  # else Python would look through all that is left, as it ends
        try:
            finish()
        except OSError as error:
            if not (isinstance(ended, SystemExit) and ended.code == 3):
                sys.stderr.write(f"edgeflare: standard output: {error.strerror}\n")
            sys.exit(3)


if __name__ == "__main__":
    start()
