"""What explain and inspect wrote, as a page shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from msgspec import structs

from documents import Document
from edgeflare.diagnose.inspect.behaviour_block import UnitLayer
from edgeflare.diagnose.inspect.inspect_document import (
    InspectDocument,
    inspect_bytes,
    inspect_document,
)
from edgeflare.diagnose.inspect.inspection import Inspection
from edgeflare.errors import UserError
from edgeflare.report.html.explanation_view import ExplanationView, LayerView, load_explanations
from edgeflare.report.html.inspection_view import inspection_view, load_inspection_view
from edgeflare.report.html.page import render_page
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json
from inspected_units import HYPOTHESES, inputs
from parsed_pages import well_formed

ROUNDING = "ordinary rounding in many layers"
SCHEMA = Path(__file__).parents[3] / "host/edgeflare/diagnose/explain.schema.json"


def difference(units: float | None, real: float) -> dict[str, Any]:
    return {
        "max_units": units, "max_real": real, "cosine": 0.99, "snr_db": 30.0, "rms_real": real / 3,
        "parted": bool(real),
    }  # fmt: skip


def vote(arm: str, kernels: str | None, threads: int, *labels: int | None) -> dict[str, Any]:
    return {
        "arm": arm, "kernels": kernels, "threads": threads, "delegated_nodes": None,
        "labels": list(labels), "outputs_crc32": ["00000000"] * len(labels), "tied": False,
        "failure": "crash" if None in labels else None, "probabilities": [0.5, 0.4, 0.1],
    }  # fmt: skip


def place(operator: int, name: str) -> dict[str, Any]:
    return {"operator": operator, "name": name, "tensor": f"{name.lower()}_{operator}"}


def explained(entry: Document) -> dict[str, Any]:
    """A finding of `explain.json`."""
    total = {"own": None, "new_share": None}
    return {
        "seed_id": entry["seed_id"], "image": entry["image"], "sha256": entry["sha256"],
        "cause": entry["cause"], "device": entry["device"], "device_queries": 9,
        "verdict": {
            "name": "kernel", "which": "delegate", "why": "only XNNPACK decides so", "shares": None,
        },
        "next_step": "ask `edgeflare conform`",
        "evidence": {
            "votes": [vote("original", None, 1, 0, 0), vote("device", "builtin", 4, 1, 1, None)],
            "recorded": [1, 1, 1], "same_runtime": True, "same_machine": True, "seeds": {},
        },
        "device_and_twin": {
            "method": "capture", "onset": place(1, "CONV_2D"), "first": True, "most": None,
            "perturbation": None, "device_runs": 2, "note": "",
            "layers": [
                {**place(0, "QUANTIZE"), "total": difference(0, 0.0), **total},
                {**place(1, "CONV_2D"), "total": difference(3, 0.1), **total},
                {**place(2, "SOFTMAX"), "total": None, **total},
            ],
        },
        "non_finite": {"twin": None, "device": None},
        "twin_and_original": {
            "first": None, "most": None, "margin": None, "note": "", "unmatched": [],
            "coarse": [], "spread": [], "grade": "spread", "said": ROUNDING, "input_cut_off": None,
            "layers": [{
                **place(1, "CONV_2D"), "matched_by": "name", "total": difference(2, 0.1),
                "residual": 1.5, "explained": 2.0, "constants": 0.5, "constants_explained": 0.6,
                "constants_overflow": False,
                "options": [], "beyond": False, "margin_share": None, "cut_off": None,
            }],
        },
    }  # fmt: skip


@pytest.fixture
def told(document: Document) -> dict[str, Any]:
    """Explanations of the first finding."""
    entry = document["findings"][0]
    return {
        "schema": "edgeflare.explain/v1", "edgeflare": "test", "devices": {entry["device"]: {}},
        "pending": {"device": None, "seed_ids": []},
        "pair": {"name": "laboratory", "fingerprint": document["pair"]["fingerprint"]},
        "findings": {str(entry["seed_id"]): explained(entry)},
    }  # fmt: skip


def load(told: Any, document: Document, folder: Path) -> dict[int, ExplanationView]:
    text = told if isinstance(told, str) else json.dumps(told)
    (folder / "explain.json").write_text(text)
    return load_explanations(RunDirectory(folder), from_json(document))


@pytest.fixture
def one(told: dict[str, Any]) -> dict[str, Any]:
    """What is said of the finding, for the test to change."""
    (only,) = told["findings"].values()
    said: dict[str, Any] = only
    return said


@pytest.fixture
def explain(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> Callable[[], ExplanationView]:
    """Return the only explanation, as a page gets it."""

    def explained_finding() -> ExplanationView:
        (explanation,) = load(told, document, tmp_path).values()
        return explanation

    return explained_finding


Explain = Callable[[], ExplanationView]


@pytest.mark.slow
def test_what_is_read_here_is_what_explain_writes(told: dict[str, Any]) -> None:
    jsonschema.validate(told, json.loads(SCHEMA.read_text()))


def test_a_finding_is_explained(told: dict[str, Any], document: Document, tmp_path: Path) -> None:
    document["classes"] = ["ant", "bee", "cat"]
    assert load(told, document, tmp_path) == {
        document["findings"][0]["seed_id"]: ExplanationView(
            verdict="kernel (delegate)",
            why="only XNNPACK decides so",
            next_step="ask `edgeflare conform`",
            onset="Device and twin part at 1 CONV_2D",
            votes=(
                ("original, 1 thread", "ant (2 times)"),
                ("device, builtin, 4 threads", "bee, then crash (3 times)"),
            ),
            layers=(
                LayerView("0 QUANTIZE", 0.0),
                LayerView("1 CONV_2D", 3.0, 1.5, begins=True),
            ),
            device=document["findings"][0]["device"],
        )
    }


def test_votes_of_an_accelerator_say_how_it_ran(one: dict[str, Any], explain: Explain) -> None:
    part = {"delegated_nodes": 5, "total_nodes": 9, "precision": "fp16", "fallback": True}
    whole = {"delegated_nodes": 9, "total_nodes": 9, "precision": "fp32", "fallback": False}
    one["evidence"]["votes"] = [{**vote("device", "gpu", 1, 1, 1), **how} for how in (part, whole)]
    assert [how for how, _ in explain().votes] == [
        "device, gpu, fp16, fallback of 4 of 9 nodes",
        "device, gpu, fp32",
    ]


def test_an_onset_is_called_first_only_where_it_is(one: dict[str, Any], explain: Explain) -> None:
    one["device_and_twin"]["first"] = False
    one["twin_and_original"]["most"] = place(0, "QUANTIZE")
    assert explain().onset == (
        "Device and twin part at 1 CONV_2D, or earlier; "
        "twin and original at 0 QUANTIZE by more than quantization explains"
    )


CONV = place(1, "CONV_2D")
COARSE = CONV | {"part": "weights", "kind": "saturated", "why": "", "advice": "", "share": 0.9}
SATURATED = "CONV_2D (operator 1) is coarse, saturated"


@pytest.mark.parametrize(
    ("which", "parting", "onset", "begins"),
    [
        (None, {}, f"It begins in no single layer: {ROUNDING}", []),
        (
            None,
            {"most": CONV},
            "Twin and original part at 1 CONV_2D by more than quantization explains",
            ["1 CONV_2D"],
        ),
        (None, {"layers": []}, None, []),
        (
            "coarse",
            {"coarse": [COARSE], "grade": "coarse", "said": SATURATED},
            SATURATED,
            ["1 CONV_2D"],
        ),
    ],
    ids=["nowhere", "a layer", "not looked at", "coarse"],
)
def test_compression_begins_where_twin_and_original_part_or_quantization_is_coarse(
    one: dict[str, Any],
    explain: Explain,
    which: str | None,
    parting: dict[str, Any],
    onset: str | None,
    begins: list[str],
) -> None:
    """And not where device and twin part."""
    one["verdict"] |= {"name": "compression", "which": which}
    one["twin_and_original"] |= parting
    explanation = explain()
    assert explanation.verdict == ("compression (coarse)" if which else "compression")
    assert explanation.onset == onset
    assert [layer.name for layer in explanation.layers if layer.begins] == begins


@pytest.mark.parametrize(
    ("name", "which", "said"),
    [
        ("several", "delegate", "several: 25% compression, 75% kernel (delegate)"),
        ("compression", None, "compression"),
        ("kernel", None, "kernel"),
        ("none", None, "none"),
    ],
)
def test_several_causes_have_their_shares_and_one_has_none(
    one: dict[str, Any], explain: Explain, name: str, which: str | None, said: str
) -> None:
    shares = {"compression": 0.25, "kernel": 0.75}
    one["verdict"] |= {"name": name, "which": which, "shares": shares}
    assert explain().verdict == said


def test_models_without_quantization_are_compared_in_real_values(
    one: dict[str, Any], explain: Explain
) -> None:
    for layer in one["device_and_twin"]["layers"][:2]:
        layer["total"]["max_units"] = None
    explanation = explain()
    assert explanation.unit == "real values"
    assert [layer.kernel for layer in explanation.layers] == [0.0, 0.1]


def test_a_layer_without_quantization_in_a_network_with_it_is_known_all_the_same(
    one: dict[str, Any], explain: Explain
) -> None:
    first, _, last = one["device_and_twin"]["layers"]
    first["total"] = difference(None, 0.0)
    last["total"] = difference(None, 0.25)
    explanation = explain()
    assert explanation.unit == "quantization units"
    assert [(layer.kernel, layer.real) for layer in explanation.layers] == [
        (0.0, None),
        (3.0, None),
        (None, 0.25),
    ]


def test_what_is_not_of_this_run_or_of_its_input_is_left_out(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    assert load_explanations(RunDirectory(tmp_path), from_json(document)) == {}
    another = {"pair": {"name": "laboratory", "fingerprint": "another"}}
    changes: list[dict[str, Any]] = [another, {"findings": {}}]
    for change in changes:
        assert load(told | change, document, tmp_path) == {}
    document["findings"][0]["sha256"] = "0" * 64
    assert load(told, document, tmp_path) == {}


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"schema": "edgeflare.explain/v1"}'])
def test_a_damaged_file_is_said(document: Document, tmp_path: Path, text: str) -> None:
    with pytest.raises(
        UserError, match=r"explain\.json is (damaged|not of the schema).*`edgeflare explain"
    ):
        load(text, document, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "edgeflare.explain/v9"},
        {"findings": {"1": {"seed_id": 1}}},
        {"findings": None},
        {"devices": {}},
    ],
)
def test_so_is_one_that_holds_something_else(
    told: dict[str, Any], document: Document, tmp_path: Path, change: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match=r"is (damaged: findings|not of the schema)"):
        load(told | change, document, tmp_path)


@pytest.mark.parametrize("key", ["verdict", "evidence", "device_and_twin", "twin_and_original"])
def test_so_is_one_in_which_an_entry_lacks_a_part(
    one: dict[str, Any], explain: Explain, key: str
) -> None:
    del one[key]
    with pytest.raises(UserError, match="is damaged"):
        explain()


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
    sentence = whole.verdict.sentence
    assert sentence.startswith("channel 3 of CONV_2D (operator 0) has ")
    assert f"Hidden units C{sentence[1:]}" in parsed.text
    assert len(parsed.all("script")) == 1
    assert "2 <script>" in parsed.text


def test_a_strip_has_a_cell_for_each_layer_and_the_table_says_the_same(
    whole: InspectDocument, show: Callable[[InspectDocument], str]
) -> None:
    shares, aucs = inspection_view(whole).strips
    assert [cell.begins for cell in shares.cells] == [True, False]
    for cell, layer in zip(shares.cells, whole.layers, strict=True):
        assert cell.percent == pytest.approx(100 * max(layer.top_share or 0.0, 0.0))
        assert cell.words == (
            f"{layer.operator} {layer.name}: channel {layer.top_channel} has {layer.top_share:.0%}"
        )
    assert all(0.0 <= cell.percent <= 100.0 for cell in aucs.cells)
    parsed = well_formed(show(whole))
    titles = [one["title"] for one in parsed.all("span") if "title" in one]
    assert titles == [cell.words for strip in (shares, aucs) for cell in strip.cells]
    top = whole.layers[0]
    text = f"0 CONV_2D 16 {top.share:.0%} {top.top_channel} {top.top_share:.0%}"
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
    document = structs.replace(
        whole,
        best=tuple(one for one in whole.best if one.hypothesis != "deviates"),
        layers=tuple(structs.replace(one, aucs={}, summed_auc=None) for one in whole.layers),
    )
    (strip,) = inspection_view(document).strips
    assert strip.name.startswith("share of the margin's error")
    assert "What foretells" not in show(document)


@pytest.mark.slow
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
    damage: Callable[[dict[str, Any]], object],
    said: str,
) -> None:
    document = json.loads(inspect_bytes(whole))
    damage(document)
    (tmp_path / "inspect.json").write_text(json.dumps(document))
    with pytest.raises(UserError) as caught:
        load_inspection_view(RunDirectory(tmp_path))
    assert said in str(caught.value)
    assert str(caught.value).endswith(f"make it again with `edgeflare inspect {tmp_path}`")
