"""Changed inputs as a browser shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

from checked_figures import changes, decisions, document, figures, operators
from edgeflare.core.query import Arm
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import UserError
from edgeflare.models.run_pair import InterfaceDescription
from edgeflare.pages.answers.answer_forms import RecordedAnswer
from edgeflare.release.check_document import check_bytes, load_check
from edgeflare.release.check_html import (
    SectionEvidence,
    check_html,
    looked_at_html,
    section_evidence,
)
from edgeflare.release.figures.decisions import ChangedInput
from edgeflare.release.sections import SectionName
from parsed_pages import well_formed
from structured_views import MASKS, OBJECTS, TEXTS

PICTURE = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
POINTS: dict[str, Any] = {
    "form": "values", "head": "", "measure": "largest difference", "distance": 0.5,
    "tolerance": 0.1, "compared": ["original", "device"], "size": 2, "names": ["x", "y"],
    "values": {"original": [0.1, 0.2], "twin": [0.1, 0.2], "device": [0.6, 0.7]},
    "points": [{"number": 0, "distance": 0.5, "places": {
        "original": [0.1, 0.2], "twin": [0.1, 0.2], "device": [0.6, 0.7]}}],
}  # fmt: skip


def looked_at(folder: Path, view: dict[str, Any]) -> str:
    """Return what is drawn of a picture with answers, of a document that was written and read."""
    (folder / "1.png").write_bytes(ImageDomain.encode_file(PICTURE))
    one = ChangedInput(
        seed_id=1,
        name="1.png",
        said={Arm.ORIGINAL: "this", Arm.TWIN: "that", Arm.DEVICE: "that"},
        right="",
        strength=0.3,
        file="1.png",
        answers=(msgspec.convert(view, RecordedAnswer),),
    )
    found = document(figures(decisions=decisions(changes=changes(1), changed_inputs=(one,))))
    interface = InterfaceDescription(outputs=None)
    path = folder / "check.json"
    path.write_bytes(check_bytes(structs.replace(found, interface=interface)))
    return looked_at_html(load_check(path), folder)


@pytest.mark.parametrize(
    ("view", "marks", "said"), [(OBJECTS, 4, "object vanished"), (POINTS, 2, "largest difference")]
)
def test_boxes_and_points_lie_upon_the_picture(
    view: dict[str, Any], marks: int, said: str, tmp_path: Path
) -> None:
    drawn = looked_at(tmp_path, view)
    well_formed(drawn)
    over = drawn.partition('<div class="over">')[2].partition("</div>")[0]
    assert over.count("<title>") == marks
    assert said in drawn


def test_masks_lie_upon_the_picture(tmp_path: Path) -> None:
    drawn = looked_at(tmp_path, MASKS)
    well_formed(drawn)
    assert drawn.count('<image class="mask"') == 4


def test_masks_of_another_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="runs that are not the 25 pixels of a mask"):
        looked_at(tmp_path, {**MASKS, "rows": 5, "columns": 5})


def test_texts_stand_below(tmp_path: Path) -> None:
    assert "<ins>" in looked_at(tmp_path, TEXTS)


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
    assert any(one.state == "pass" and ";" in one.sentence for one in found.shown_sections)
    assert all(one.sentence in page.text for one in found.shown_sections)
    assert page.text.count("look further: edgeflare") == 4
