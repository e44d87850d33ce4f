"""`edgeflare doctor`: what is missing, and how to install it."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from edgeflare.cli.console import Console
from edgeflare.devices.installation_check import check_installation
from edgeflare.untrusted_text import printable


def doctor() -> None:
    """Say what this machine has, what it lacks, and the command that installs it."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "what", "found"):
        table.add_column(column)
    table.add_column("to get it", overflow="fold")  # a command that is cut off cannot be typed
    for check in check_installation():
        mark = "ok" if check.found else "MISSING" if check.needed else "-"
        table.add_row(
            mark,
            check.name,
            escape(printable(check.found)),
            escape("" if check.found else check.mend),
        )
    Console().print(table)
