"""A conformance run, as `edgeflare report` shows and writes it."""

from __future__ import annotations

import msgspec

from edgeflare.cli.presentation import Reported, page_bytes
from edgeflare.conform.presentation.conform_page import conform_page
from edgeflare.conform.presentation.conform_suite import conform_suite
from edgeflare.conform.presentation.known_toml import known_text
from edgeflare.conform.record.conform_document import read_conformance
from edgeflare.pages.junit import junit_xml
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.run.run_directory import RunDirectory


def reported_conformance(directory: RunDirectory) -> Reported:
    """Read a conformance run.

    Raises:
        UserError: it was cut off before its document was written, or that is damaged.

    """
    document = read_conformance(directory)
    page = conform_page(document)
    return Reported(
        lambda: msgspec.to_builtins(document),
        lambda console: print_page(console, page, str(directory.path)),
        {
            "--html": ("conform.html", lambda: page_bytes(page)),
            "--junit": ("junit.xml", lambda: junit_xml(conform_suite(document))),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
            "--known": ("known.toml", lambda: known_text(document).encode()),
        },
        "a conformance run",
    )
