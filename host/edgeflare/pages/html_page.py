"""A page as one HTML file that asks for nothing. Needs the extra `report`."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from edgeflare.pages.html_template import packaged, page_environment
from edgeflare.pages.page import Page
from edgeflare.pages.terminal import MARKS


def html_page(page: Page, script: str = "") -> str:
    """Return a page as an HTML document, with what only a browser shows.

    Args:
        page: what is shown.
        script: the source of the one script that it may run; empty for none.

    """
    return (
        page_environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            sections=[one for one in page.sections if any(one.blocks)],
            marks=MARKS,
            style=packaged("style.css"),
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )
