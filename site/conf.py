"""How Sphinx makes the site of `docs/`: `make site`.

The pages are those that a forge shows, with links to files of the source, which the site does not
have. A link that leads nowhere fails the build.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

project = "EdgeFlare"
author = "The EdgeFlare developers"
copyright = author  # noqa: A001 - Sphinx calls it so
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "EdgeFlare"
html_extra_path = ["llms.txt"]
exclude_patterns = ["pictures/*.py"]
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False

_DOCS = Path(os.environ["EDGEFLARE_CHECKOUT"], "docs").resolve()
_PAGE = re.compile(r"\]\(([\w/-]+)\.md\)")
_LINK = re.compile(r"\[(?P<words>[^\]]+)\]\((?P<place>[^)#:]+)(?:#[^)]*)?\)")
_SECTION = re.compile(r"(Args|Returns|Yields|Raises|Attributes|Note|Example):")
_BESIDE = {"From programs and CI": ["reference"]}
"""Pages that only the site has, by the part that they belong to."""


def _with_contents(_app: Any, name: str, source: list[str]) -> None:
    """Give the first page the contents of the site, part by part, in the order of its tables."""
    if name != "index":
        return
    trees = []
    for part in re.split(r"^## ", source[0], flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        pages = [*dict.fromkeys(_PAGE.findall(text)), *_BESIDE.get(title, ())]
        trees.append(
            "```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "\n".join(pages) + "\n```\n"
        )
    source[0] += "\n" + "\n".join(trees)


def _without_source(_app: Any, name: str, source: list[str]) -> None:
    """Show links to files of the source as their words; one that leads nowhere stays, and fails."""
    folder = (_DOCS / name).parent

    def shown(link: re.Match[str]) -> str:
        place = (folder / link["place"]).resolve()
        inside = place.is_relative_to(_DOCS) and place.suffix != ".py"
        return link[0] if inside or not place.exists() else link["words"]

    source[0] = _LINK.sub(shown, source[0])


def _with_code(
    _app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]
) -> None:
    """Show an indented block behind a colon as code, as readers of the source take it."""
    for at, line in enumerate(lines[:-2]):
        sentence = line.endswith(":") and not _SECTION.fullmatch(line)
        if sentence and not lines[at + 1] and lines[at + 2].startswith("    "):
            lines[at] = f"{line}:"


def setup(app: Any) -> None:
    """Register what is above."""
    app.connect("autodoc-process-docstring", _with_code, priority=400)  # before its sections are
    app.connect("source-read", _with_contents)
    app.connect("source-read", _without_source)
