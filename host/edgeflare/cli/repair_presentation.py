"""A repair, as `edgeflare repair` and `edgeflare report` show and write it."""

from __future__ import annotations

from shlex import quote

import msgspec
from rich.text import Text

from edgeflare.cli.console import Console
from edgeflare.cli.presentation import Reported, page_bytes
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.repair.page.repair_page import repair_page
from edgeflare.repair.repair_document import RepairDocument, read_repair
from edgeflare.run.run_directory import RunDirectory


def reported_repair(directory: RunDirectory) -> Reported:
    """Read a repair."""
    document = read_repair(directory)
    page = repair_page(document, directory)
    return Reported(
        lambda: msgspec.to_builtins(document),
        lambda console: print_repair(console, document, directory),
        {
            "--html": ("repair.html", lambda: page_bytes(page)),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
        },
        "a repair",
    )


def print_repair(console: Console, document: RepairDocument, directory: RunDirectory) -> None:
    """Print a repair, and how its model is searched."""
    where = str(directory.path)
    print_page(console, repair_page(document, directory), where)
    if document.written:
        console.print(
            Text(f"Search it: edgeflare search {quote(where)}", style="dim"), soft_wrap=True
        )
