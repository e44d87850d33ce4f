"""The evidence of the sections of a check: parts of its page, and runs in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from checked_figures import document, figures, operators
from edgeflare.check.check_html import check_html
from edgeflare.check.section_evidence import SectionEvidence, section_evidence
from edgeflare.check.sections import SectionName
from edgeflare.errors import UserError
from parsed_pages import well_formed


def evidence(name: SectionName, folder: Path, run: str = "conform") -> list[SectionEvidence]:
    found = document(figures(operators=(structs.replace(operators(), run=run),)))
    section = next(one for one in found.sections if one.name == name)
    return list(section_evidence(found.figures, section, folder, {"operators": "Operators"}))


def test_a_run_is_linked_by_its_page_or_else_its_folder(tmp_path: Path) -> None:
    part = SectionEvidence("Operators", "#operators")
    assert evidence("device", tmp_path) == [part]
    (tmp_path / "conform").mkdir()
    assert evidence("device", tmp_path) == [
        part,
        SectionEvidence(
            "operators on phone", "conform/", f"edgeflare report {tmp_path}/conform --html"
        ),
    ]
    (tmp_path / "conform" / "conform.html").touch()
    assert evidence("device", tmp_path)[1] == SectionEvidence(
        "operators on phone", "conform/conform.html"
    )
    assert evidence("numbers", tmp_path) == []


def test_names_of_folders_neither_lead_elsewhere_nor_run(tmp_path: Path) -> None:
    (tmp_path / "javascript:x(1)").mkdir()
    _, one = evidence("device", tmp_path, "javascript:x(1)")
    assert one.address == "javascript%3Ax%281%29/"
    with pytest.raises(UserError, match="outside of it"):
        evidence("device", tmp_path, "../other")


def test_a_browser_shows_all_words_of_what_passes(tmp_path: Path) -> None:
    found = document(figures())
    page = well_formed(check_html(found, tmp_path))
    assert any(one.state == "pass" and ";" in one.words for one in found.shown_sections)
    assert all(one.words in page.text for one in found.shown_sections)
    assert page.text.count("look further: edgeflare") == 4
