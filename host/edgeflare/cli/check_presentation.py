"""A check, as `edgeflare report` shows and writes it."""

from __future__ import annotations

from edgeflare.check.check_document import CheckDocument, load_check
from edgeflare.check.check_page import check_page
from edgeflare.check.check_suite import check_suite
from edgeflare.cli.presentation import Reported
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
    page = check_page(document)
    return Reported(
        lambda: plain_json(document),
        lambda console: print_page(console, page, str(directory.path)),
        {
            "--html": ("check.html", lambda: _page(document, directory)),
            "--junit": ("junit.xml", lambda: junit_xml(check_suite(document))),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
        },
        "a check",
    )


def _page(document: CheckDocument, directory: RunDirectory) -> bytes:
    from edgeflare.check.check_html import check_html  # noqa: PLC0415 - takes time

    return check_html(document, directory.path).encode()
