"""A conformance run, as `edgeflare report` shows and writes it."""

from __future__ import annotations

import msgspec

from edgeflare.cli.reported import Reported, extra_needed
from edgeflare.conform.record.conform_document import ConformDocument, read_conformance
from edgeflare.conform.shown.conform_junit import conform_junit
from edgeflare.conform.shown.conform_summary import conform_summary
from edgeflare.conform.shown.conform_terminal import print_conformance
from edgeflare.conform.shown.known_text import known_text
from edgeflare.run.run_directory import RunDirectory


def reported_conformance(directory: RunDirectory) -> Reported:
    """Read a conformance run.

    Raises:
        UserError: it was cut off before its document was written, or that is damaged.

    """
    document = read_conformance(directory)
    return Reported(
        lambda: msgspec.to_builtins(document),
        lambda console: print_conformance(console, document, str(directory.path)),
        {
            "--html": ("conform.html", lambda: _page(document)),
            "--junit": ("junit.xml", lambda: conform_junit(document)),
            "--summary": ("summary.md", lambda: conform_summary(document).encode()),
            "--known": ("known.toml", lambda: known_text(document).encode()),
        },
        "a conformance run",
    )


def _page(document: ConformDocument) -> bytes:
    with extra_needed():
        from edgeflare.conform.shown.page.conform_page import (  # noqa: PLC0415
            render_conformance,
        )
    return render_conformance(document).encode()
