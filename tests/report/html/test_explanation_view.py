"""What explain and inspect wrote, as a page shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

from conformed_runs import BOARD
from documents import Document
from edgeflare.core.query import Arm
from edgeflare.diagnose.compression_error import (
    CompressionError,
    LayerCompressionError,
    coarse_layer,
)
from edgeflare.diagnose.constant_error import ConstantError
from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import ExecutionMode, Vote
from edgeflare.diagnose.explain_document import ExplainDocument, ExplainedPair, PendingFindings
from edgeflare.diagnose.inspect.behaviour_block import UnitLayer
from edgeflare.diagnose.inspect.inspect_document import (
    InspectDocument,
    inspect_bytes,
    inspect_document,
)
from edgeflare.diagnose.inspect.inspection import Inspection
from edgeflare.diagnose.layer_difference import Difference, KernelOnset, LayerName, layer_difference
from edgeflare.diagnose.verdict import MarginShares, Name, Verdict, Which
from edgeflare.errors import UserError
from edgeflare.report.html.explanation_view import (
    ExplanationView,
    LayerView,
    explanation_view,
    load_explanation_views,
    verdict_words,
)
from edgeflare.report.html.inspection_view import inspection_view, load_inspection_view
from edgeflare.report.html.run_html import run_html
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json
from explained_findings import apart, explained
from inspected_units import HYPOTHESES, inputs
from parsed_pages import well_formed

ROUNDING = "ordinary rounding in many layers, which is what healthy files have"
QUANTIZE = LayerName(0, "QUANTIZE", "quantize_0")
CONV = LayerName(1, "CONV_2D", "conv_2d_1")
SOFTMAX = LayerName(2, "SOFTMAX", "softmax_2")
KERNEL = Verdict("kernel", "only XNNPACK decides so", "delegate")
EVIDENCE = Evidence(
    original=Vote(ExecutionMode(Arm.ORIGINAL), (0, 0), (0, 0)),
    twin=Vote(ExecutionMode(Arm.TWIN, "xnnpack"), (0, 0), (0, 0)),
    host=(),
    device=Vote(ExecutionMode(Arm.DEVICE, "builtin", 4), (1, 1, None), (0, 0, 0), failure="crash"),
)
ERROR = CompressionError(
    layers=(
        LayerCompressionError(
            CONV, "name", apart(2, 0.1), 1.5, 2.0, ConstantError(0.5, 0.6), options=()
        ),
    )
)


def onset(*totals: Difference | None) -> KernelOnset:
    """Device and twin part in the second of three layers; `totals` are what they differ by."""
    layers = zip((QUANTIZE, CONV, SOFTMAX), totals, strict=True)
    return KernelOnset(
        "capture", CONV, True, layers=tuple(layer_difference(*one, None) for one in layers)
    )


ONSET = onset(apart(0, 0.0), apart(3, 0.1), None)


def shown(
    verdict: Verdict = KERNEL,
    parting: KernelOnset = ONSET,
    error: CompressionError = ERROR,
    **fields: Any,
) -> ExplanationView:
    """What a card shows of a finding of which this is known."""
    one = explained(verdict, parting, error, **({"evidence": EVIDENCE} | fields))
    return explanation_view(one, ("ant", "bee", "cat"))


@pytest.fixture
def told(document: Document) -> ExplainDocument:
    """Explanations of the first finding."""
    entry = from_json(document).findings[0]
    one = explained(KERNEL, ONSET, ERROR, finding=entry, device=entry.device, evidence=EVIDENCE)
    pair = ExplainedPair(name="laboratory", fingerprint=document["pair"]["fingerprint"])
    return ExplainDocument(
        edgeflare="test",
        pair=pair,
        pending=PendingFindings(device=None, seed_ids=()),
        devices={entry.device: BOARD},
        findings={str(entry.seed_id): one},
    )


def load(told: Any, document: Document, folder: Path) -> dict[int, ExplanationView]:
    text = told if isinstance(told, str) else json.dumps(msgspec.to_builtins(told))
    (folder / "explain.json").write_text(text)
    return load_explanation_views(RunDirectory(folder), from_json(document))


@pytest.mark.slow
def test_a_finding_is_explained(told: ExplainDocument, document: Document, tmp_path: Path) -> None:
    document["classes"] = ["ant", "bee", "cat"]
    (entry,) = told.findings.values()
    assert load(told, document, tmp_path) == {
        entry.seed_id: ExplanationView(
            verdict="kernel (delegate)",
            why="only XNNPACK decides so",
            next_step=entry.next_step,
            onset="Device and twin part at 1 CONV_2D",
            votes=(
                ("original, 1 thread", "ant (2 times)"),
                ("device, builtin, 4 threads", "bee, then crash (3 times)"),
            ),
            layers=(LayerView("0 QUANTIZE", 0.0), LayerView("1 CONV_2D", 3.0, 1.5, begins=True)),
            device=entry.device,
        )
    }
    assert entry.next_step.startswith("`edgeflare conform` tells")


def test_votes_of_an_accelerator_say_how_it_ran() -> None:
    part = ExecutionMode(Arm.DEVICE, "gpu", 1, 5, 9, "fp16", True)
    whole = ExecutionMode(Arm.DEVICE, "gpu", 1, 9, 9, "fp32", False)
    device, other = (replace(EVIDENCE.device, mode=mode) for mode in (part, whole))
    votes = shown(evidence=replace(EVIDENCE, device=device, others=(other,))).votes
    assert [how for how, _ in votes[1:]] == [
        "device, gpu, fp16, fallback of 4 of 9 nodes",
        "device, gpu, fp32",
    ]


def test_an_onset_is_called_first_only_where_it_is() -> None:
    maybe = replace(ONSET, first=False)
    assert shown(parting=maybe, error=replace(ERROR, most=QUANTIZE)).onset == (
        "Device and twin part at 1 CONV_2D, or earlier; "
        "twin and original at 0 QUANTIZE by more than quantization explains"
    )


COARSE = coarse_layer(CONV, "weights", "saturated", "they are cut off", 0.9)


@pytest.mark.parametrize(
    ("which", "changes", "onset", "begins"),
    [
        (None, {}, f"It begins in no single layer: {ROUNDING}", []),
        (
            None,
            {"most": CONV},
            "Twin and original part at 1 CONV_2D by more than quantization explains",
            ["1 CONV_2D"],
        ),
        (None, {"layers": ()}, None, []),
        ("coarse", {"coarse": (COARSE,)}, COARSE.said, ["1 CONV_2D"]),
    ],
    ids=["nowhere", "a layer", "not looked at", "coarse"],
)
def test_compression_begins_where_twin_and_original_part_or_quantization_is_coarse(
    which: Which | None, changes: dict[str, Any], onset: str | None, begins: list[str]
) -> None:
    """And not where device and twin part."""
    view = shown(Verdict("compression", "so it is", which), error=replace(ERROR, **changes))
    assert view.verdict == ("compression (coarse)" if which else "compression")
    assert view.onset == onset
    assert [layer.name for layer in view.layers if layer.begins] == begins


@pytest.mark.parametrize("name", ["other-order", "input-suspect", "none"])
def test_what_is_no_matter_of_layers_begins_in_none_of_them(name: Name) -> None:
    """Device and twin differ by a rounding in almost any network."""
    view = shown(Verdict(name, "so it is"))
    assert view.onset is None
    assert not any(layer.begins for layer in view.layers)


@pytest.mark.parametrize(
    ("name", "which", "said"),
    [
        ("several", "delegate", "several: 25% compression, 75% kernel (delegate)"),
        ("compression", None, "compression"),
        ("kernel", "builtin", "kernel (built-in kernels)"),
        ("kernel", "cpu-fallback", "kernel (CPU fallback)"),
        ("kernel", "thread-count", "kernel (thread count)"),
        ("kernel", None, "kernel"),
        ("none", None, "none"),
    ],
)
def test_several_causes_have_their_shares_and_one_has_none(
    name: Name, which: Which | None, said: str
) -> None:
    assert verdict_words(Verdict(name, "so it is", which, MarginShares(0.25, 0.75))) == said


def test_models_without_quantization_are_compared_in_real_values() -> None:
    view = shown(parting=onset(apart(None, 0.0), apart(None, 0.1), None))
    assert view.unit == "real values"
    assert [layer.kernel for layer in view.layers] == [0.0, 0.1]


def test_a_layer_without_quantization_in_a_network_with_it_is_known_all_the_same() -> None:
    view = shown(parting=onset(apart(None, 0.0), apart(3, 0.1), apart(None, 0.25)))
    assert view.unit == "quantization units"
    assert [(layer.kernel, layer.real) for layer in view.layers] == [
        (0.0, None),
        (3.0, None),
        (None, 0.25),
    ]


def test_what_is_not_of_this_run_or_of_its_input_is_left_out(
    told: ExplainDocument, document: Document, tmp_path: Path
) -> None:
    assert load_explanation_views(RunDirectory(tmp_path), from_json(document)) == {}
    another = ExplainedPair(name="laboratory", fingerprint="another")
    for changed in (structs.replace(told, pair=another), structs.replace(told, findings={})):
        assert load(changed, document, tmp_path) == {}
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
    told: ExplainDocument, document: Document, tmp_path: Path, change: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match=r"is (damaged: findings|not of the schema)"):
        load(msgspec.to_builtins(told) | change, document, tmp_path)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("verdict", None, "has no verdict"),
        ("evidence", None, "has no evidence"),
        ("device_and_twin", None, "has no device_and_twin"),
        ("twin_and_original", None, "has no twin_and_original"),
        ("verdict.which", "magic", r"verdict\.which: invalid enum value 'magic'"),
        ("evidence.votes.0.arm", "third", r"evidence\.votes\[0\]\.arm: invalid enum value 'third'"),
        (
            "device_and_twin.layers.0.operator_index",
            -1,
            r"layers\[0\]\.operator_index: expected int >= 0",
        ),
        ("twin_and_original.layers.0.beyond", 1, r"\.beyond: expected bool, got int"),
        ("sha256", "abc", r"sha256: expected str matching regex"),
    ],
)
def test_so_is_one_in_which_an_entry_lacks_a_part_or_has_a_wrong_value(
    told: ExplainDocument, document: Document, tmp_path: Path, place: str, value: Any, said: str
) -> None:
    plain = json.loads(json.dumps(msgspec.to_builtins(told)))
    (entry,) = plain["findings"].values()
    *within, last = (int(part) if part.isdigit() else part for part in place.split("."))
    part = entry
    for step in within:
        part = part[step]
    if value is None:
        del part[last]
    else:
        part[last] = value
    with pytest.raises(UserError, match=rf"is damaged: findings\[\.\.\.\].* ?{said}") as refused:
        load(plain, document, tmp_path)
    assert "\n" not in str(refused.value)


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
        return run_html(from_json(without_findings), directory, {}, inspection_view(inspection))

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
            f"{layer.operator_index} {layer.name}: channel {layer.top_channel} has"
            f" {layer.top_share:.0%}"
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
    whole: InspectDocument, tmp_path: Path, damage: Callable[[dict[str, Any]], object], said: str
) -> None:
    document = json.loads(inspect_bytes(whole))
    damage(document)
    (tmp_path / "inspect.json").write_text(json.dumps(document))
    with pytest.raises(UserError) as caught:
        load_inspection_view(RunDirectory(tmp_path))
    assert said in str(caught.value)
    assert str(caught.value).endswith(f"make it again with `edgeflare inspect {tmp_path}`")
