"""A page as one HTML file that asks for nothing, or as a part of another document."""

from __future__ import annotations

import functools
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from shlex import quote
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from edgeflare.pages.facts import in_words, number
from edgeflare.pages.page import MARKS, Page
from edgeflare.untrusted_text import for_html


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
            sections=[section for section in page.sections if any(section.blocks)],
            marks=MARKS,
            style=packaged("style.css"),
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def html_fragment(page: Page, where: str) -> str:
    """Return the brief parts of a page as HTML that stands in another document, as in a notebook.

    Args:
        page: what is shown.
        where: the folder that it is about, as the user knows it.

    """
    return (
        page_environment()
        .get_template("fragment.html.j2")
        .render(
            page=page,
            sections=[
                (section.title, blocks)
                for section in page.sections
                if (blocks := section.brief_blocks())
            ],
            marks=MARKS,
            where=quote(where),
        )
    )


PACKAGE = "edgeflare.pages"


@functools.cache  # it keeps the templates that it has compiled
def page_environment(*packages: str) -> Environment:
    """Return an environment of this package's templates, and of those of other packages first."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "bar": _bar, "in_words": in_words}
    return environment


def packaged(name: str, package: str = PACKAGE) -> Markup:
    """Return a file of a package's templates as it is, to stand in the page unescaped."""
    text = (files(package) / "templates" / name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - nobody but EdgeFlare wrote it


def _shown(value: Any) -> Any:
    return for_html(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _bar(percent: float) -> str:
    """Return the length of a bar as a style sheet reads it, in as few characters as will do."""
    return f"{percent:.1f}".rstrip("0").rstrip(".") or "0"
