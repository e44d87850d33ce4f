"""A check, as `edgeflare report` shows and writes it."""

from __future__ import annotations

from functools import partial

from edgeflare.check.check_document import load_check
from edgeflare.check.check_page import check_page
from edgeflare.check.check_suite import check_suite
from edgeflare.check.looked_at import looked_at_html
from edgeflare.cli.reported import Reported, page_bytes
from edgeflare.pages.junit import junit_xml
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_directory import CHECK_DOCUMENT, RunDirectory


def reported_check(directory: RunDirectory) -> Reported:
    """Read a check.

    Raises:
        UserError: it cannot be read, or is damaged.

    """
    document = load_check(directory.inside(CHECK_DOCUMENT))
    page, inputs = check_page(document), partial(looked_at_html, document, directory.path)
    return Reported(
        lambda: plain_json(document),
        lambda console: print_page(console, page, str(directory.path)),
        {
            "--html": ("check.html", lambda: page_bytes(check_page(document, inputs))),
            "--junit": ("junit.xml", lambda: junit_xml(check_suite(document))),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
        },
        "a check",
    )
