"""A repair, as `edgeflare report` shows and writes it."""

from __future__ import annotations

import msgspec

from edgeflare.cli.console import Console
from edgeflare.cli.reported import Reported, extra_needed
from edgeflare.repair.repair_document import RepairDocument, read_repair
from edgeflare.repair.repair_summary import repair_summary
from edgeflare.repair.repair_terminal import print_repair, print_repaired_search
from edgeflare.run.run_directory import RunDirectory


def reported_repair(directory: RunDirectory) -> Reported:
    """Read a repair.

    Raises:
        UserError: its document cannot be read, or is damaged.

    """
    document = read_repair(directory)

    def show(console: Console) -> None:
        print_repair(console, document, str(directory.path))
        if document.again is not None:
            print_repaired_search(console, document.again)

    return Reported(
        lambda: msgspec.to_builtins(document),
        show,
        {
            "--html": ("repair.html", lambda: _page(document, directory)),
            "--summary": ("summary.md", lambda: repair_summary(document).encode()),
        },
        "a repair",
    )


def _page(document: RepairDocument, directory: RunDirectory) -> bytes:
    with extra_needed():
        from edgeflare.repair.page.repair_page import render_repair  # noqa: PLC0415
    return render_repair(document, directory).encode()
