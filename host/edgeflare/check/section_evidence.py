"""The sections of a check as a browser shows them: in full, with links to their evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final
from urllib.parse import quote as quoted_address

from edgeflare.check.check_document import CheckDocument
from edgeflare.check.figures.check_figures import CheckFigures
from edgeflare.check.sections import STATES, CheckSection, SectionName
from edgeflare.pages.html_page import page_environment
from edgeflare.record.path_inside import path_inside


@dataclass(frozen=True, slots=True)
class SectionEvidence:
    """Where can be looked at what a section says.

    Attributes:
        name: what is there.
        address: of a part of the page, a file or a folder, relative to the page.
        command: makes a page of a folder that has none yet; empty where the address is one.

    """

    name: str
    address: str
    command: str = ""


def sections_html(document: CheckDocument, folder: Path, parts: Mapping[str, str]) -> str:
    """Return the sections of a check as HTML, each with its evidence.

    Args:
        document: document of the check.
        folder: folder of the check, as the user knows it.
        parts: titles of the parts that the page has, by their ids.

    Raises:
        UserError: the document names a folder outside of that of the check.

    """
    rows = [
        (one, STATES[one.state], list(section_evidence(document.figures, one, folder, parts)))
        for one in document.shown_sections
    ]
    return page_environment("edgeflare.check").get_template("sections.html.j2").render(rows=rows)


def section_evidence(
    figures: CheckFigures, section: CheckSection, folder: Path, parts: Mapping[str, str]
) -> Iterator[SectionEvidence]:
    """Yield the evidence of a section: parts of the page, then what lies in the folder.

    Args:
        figures: what was measured.
        section: the section.
        folder: folder of the check, as the user knows it.
        parts: titles of the parts that the page has, by their ids.

    Raises:
        UserError: the document names a folder outside of that of the check.

    """
    for part in _PARTS[section.name]:
        if part in parts:
            yield SectionEvidence(parts[part], f"#{part}")
    for name, run, page in _runs(figures, section.name):
        path = path_inside(folder, run)
        if path_inside(folder, f"{run}/{page}").is_file():
            yield SectionEvidence(name, quoted_address(f"{run}/{page}"))
        elif path.is_dir():
            command = f"edgeflare report {quote(str(path))} --html"
            yield SectionEvidence(name, quoted_address(f"{run}/"), command)


_PARTS: Final[Mapping[SectionName, Collection[str]]] = {
    "data": ("assumed",),
    "decisions": ("changed", "arms", "gates"),
    "numbers": ("numbers", "drawn"),
    "file": ("faults",),
    "layers": ("layers", "faults"),
    "device": ("arms", "operators", "drawn"),
    "field": ("field",),
    "near": ("near",),
    "cost": ("cost",),
    "mend": ("mend",),
}
"""Ids of the parts of the page that a section is about."""


def _runs(figures: CheckFigures, section: SectionName) -> Iterator[tuple[str, str, str]]:
    """Yield the runs that a section is made from: name, folder in that of the check, and page."""
    if section == "layers":
        yield "layer table", "layers", "layers.html"
    if section == "device":
        for one in figures.operators:
            yield f"operators on {one.device}", one.run, "conform.html"
    if section == "near" and figures.near is not None:
        yield "search of this file", figures.near.model.run, "report.html"
        yield "search of good int8 of its original", figures.near.reference.run, "report.html"
    if section == "mend" and figures.mend is not None:
        yield "repair", figures.mend.folder, "repair.html"
