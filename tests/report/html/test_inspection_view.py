"""Inspections as `edgeflare inspect` writes them, and what of them a page shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from documents import Document
from edgeflare.diagnose.inspect.behaviour_block import UnitLayer
from edgeflare.diagnose.inspect.inspect_document import (
    InspectDocument,
    inspect_bytes,
    inspect_document,
)
from edgeflare.diagnose.inspect.inspection import Inspection
from edgeflare.errors import UserError
from edgeflare.report.html.inspection_view import inspection_view, load_inspection_view
from edgeflare.report.html.page import render_page
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json
from inspected_units import HYPOTHESES, inputs
from parsed_pages import well_formed

pytestmark = pytest.mark.slow

LAYERS = (UnitLayer("CONV_2D", 0, 16), UnitLayer("<script>", 2, 32))


def inspected(*behaviours: str, part: float = 0.6) -> InspectDocument:
    inspection = Inspection(LAYERS, HYPOTHESES, 0.05, np.random.default_rng(0), permutations=50)
    rng = np.random.default_rng(1)
    inspection.add(inputs(LAYERS, 600, rng, fault=(0, 3, part), behaviours=behaviours))
    return inspect_document(inspection.result())


@pytest.fixture(scope="module")
def whole() -> InspectDocument:
    return inspected("error", "error-gradient")


@pytest.fixture
def show(document: Document, directory: RunDirectory) -> Callable[[InspectDocument], str]:
    def shown(inspection: InspectDocument) -> str:
        without_findings = {**document, "findings": [], "deviating_seeds": []}
        return render_page(from_json(without_findings), directory, {}, inspection_view(inspection))

    return shown


def test_the_page_begins_with_the_verdict_and_escapes_what_it_reads(
    whole: InspectDocument, show: Callable[[InspectDocument], str]
) -> None:
    parsed = well_formed(show(whole))
    sentence = whole["verdict"]["sentence"]
    assert sentence.startswith("channel 3 of CONV_2D (operator 0) has ")
    assert f"Hidden units C{sentence[1:]}" in parsed.text
    assert len(parsed.all("script")) == 1
    assert "2 <script>" in parsed.text


def test_a_strip_has_a_cell_for_each_layer_and_the_table_says_the_same(
    whole: InspectDocument, show: Callable[[InspectDocument], str]
) -> None:
    shares, aucs = inspection_view(whole).strips
    assert [cell.begins for cell in shares.cells] == [True, False]
    for cell, layer in zip(shares.cells, whole["layers"], strict=True):
        assert cell.percent == pytest.approx(100 * max(layer["top_share"], 0.0))
        assert cell.words == (
            f"{layer['operator']} {layer['name']}: channel {layer['top_channel']} has"
            f" {layer['top_share']:.0%}"
        )
    assert all(0.0 <= cell.percent <= 100.0 for cell in aucs.cells)
    parsed = well_formed(show(whole))
    titles = [one["title"] for one in parsed.all("span") if "title" in one]
    assert titles == [cell.words for strip in (shares, aucs) for cell in strip.cells]
    top = whole["layers"][0]
    text = f"0 CONV_2D 16 {top['share']:.0%} {top['top_channel']} {top['top_share']:.0%}"
    assert text in parsed.text


def test_a_table_says_what_foretells_a_deviation_and_what_is_nothing(
    whole: InspectDocument,
) -> None:
    view = inspection_view(whole)
    rows = {row[0]: dict(zip(view.measures, row[1:], strict=True)) for row in view.foretells}
    assert set(rows) == {"error", "error-gradient"}
    assert set(rows["error"].values()) == {"nothing"}
    assert rows["error-gradient"]["auc"].endswith("channel 3 of 0 CONV_2D")
    assert rows["error-gradient"]["regression"].endswith("all channels")


def test_without_gradients_there_is_one_strip_and_no_share(
    show: Callable[[InspectDocument], str],
) -> None:
    document = inspected("error")
    view = inspection_view(document)
    (strip,) = view.strips
    assert strip.name == "AUC for deviates of the best channel's error"
    assert view.header == ("layer", "channels", "AUC of the best error")
    assert "No verdict: it needs" in well_formed(show(document)).text


def test_where_deviates_was_not_tried_there_are_the_shares_alone(
    whole: InspectDocument, show: Callable[[InspectDocument], str]
) -> None:
    document = json.loads(json.dumps(whole))
    document["best"] = [one for one in document["best"] if one["hypothesis"] != "deviates"]
    for layer in document["layers"]:
        layer |= {"aucs": {}, "summed_auc": None}
    (strip,) = inspection_view(document).strips
    assert strip.name.startswith("share of the margin's error")
    assert "What foretells" not in show(document)


def test_nothing_is_shown_where_nobody_looked(page: str, tmp_path: Path) -> None:
    assert load_inspection_view(RunDirectory(tmp_path)) is None
    assert "Hidden units" not in page


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda one: one["layers"].clear(), "layers"),
        (lambda one: one["layers"][0].update(top_share=None), "not known of another"),
        (lambda one: one["verdict"]["unit"].update(layer=7), "of layer 7, but layers has 2"),
        (lambda one: one["verdict"].update(unit=None), "and names none"),
        (lambda one: one.pop("best"), "has no best"),
    ],
)
def test_a_damaged_file_is_refused_with_what_to_type(
    whole: InspectDocument,
    tmp_path: Path,
    damage: Callable[[InspectDocument], object],
    said: str,
) -> None:
    document = json.loads(json.dumps(whole))
    damage(document)
    (tmp_path / "inspect.json").write_bytes(inspect_bytes(document))
    with pytest.raises(UserError) as caught:
        load_inspection_view(RunDirectory(tmp_path))
    assert said in str(caught.value)
    assert str(caught.value).endswith(f"make it again with `edgeflare inspect {tmp_path}`")
