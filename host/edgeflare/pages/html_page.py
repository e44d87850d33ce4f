"""A page as one HTML file that runs no script and asks for nothing. Needs the extra `report`."""

from __future__ import annotations

from edgeflare.pages.html_template import packaged, page_environment
from edgeflare.pages.page import Page
from edgeflare.pages.terminal import MARKS


def html_page(page: Page) -> str:
    """Return a page as an HTML document, with what only a browser shows."""
    return (
        page_environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            sections=[one for one in page.sections if any(one.blocks)],
            marks=MARKS,
            style=packaged("style.css"),
        )
    )
