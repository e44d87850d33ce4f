"""`edgeflare doctor`: what is missing, and how to install it."""

from __future__ import annotations

from edgeflare.cli.console import Console
from edgeflare.devices.installation_check import check_installation
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_blocks


def doctor() -> None:
    """Say what this machine has, what it lacks, and the command that installs it."""
    rows = [
        (
            "ok" if check.found else "MISSING" if check.needed else "-",
            check.name,
            check.found or check.mend,
        )
        for check in check_installation()
    ]
    print_blocks(Console(), Table.of_words(("", "what", "found, or to get it"), rows))
