"""Explanations as `edgeflare explain` writes them, and what of them a card shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from documents import Document
from edgeflare.errors import UserError
from edgeflare.report.html.explanation_view import ExplanationView, LayerView, load_explanations
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json

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


def test_votes_of_an_accelerator_say_how_it_ran(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    part = {"delegated_nodes": 5, "total_nodes": 9, "precision": "fp16", "fallback": True}
    whole = {"delegated_nodes": 9, "total_nodes": 9, "precision": "fp32", "fallback": False}
    one["evidence"]["votes"] = [{**vote("device", "gpu", 1, 1, 1), **how} for how in (part, whole)]
    (explanation,) = load(told, document, tmp_path).values()
    assert [how for how, _ in explanation.votes] == [
        "device, gpu, fp16, fallback of 4 of 9 nodes",
        "device, gpu, fp32",
    ]


def test_an_onset_is_called_first_only_where_it_is(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    one["device_and_twin"]["first"] = False
    one["twin_and_original"]["most"] = place(0, "QUANTIZE")
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.onset == (
        "Device and twin part at 1 CONV_2D, or earlier; "
        "twin and original at 0 QUANTIZE by more than quantization explains"
    )


def test_compression_begins_where_twin_and_original_part(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    one["verdict"] |= {"name": "compression", "which": None}
    one["device_and_twin"]["onset"] = None
    (explanation,) = load(told, document, tmp_path).values()
    assert (explanation.verdict, explanation.onset) == (
        "compression",
        f"It begins in no single layer: {ROUNDING}",
    )
    assert not any(layer.begins for layer in explanation.layers)
    one["twin_and_original"]["most"] = place(1, "CONV_2D")
    (explanation,) = load(told, document, tmp_path).values()
    assert [layer.name for layer in explanation.layers if layer.begins] == ["1 CONV_2D"]


def test_compression_begins_where_quantization_is_coarse(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    one["verdict"] |= {"name": "compression", "which": "coarse"}
    coarse = place(1, "CONV_2D") | {
        "part": "weights", "kind": "saturated", "why": "", "advice": "", "share": 0.9,
    }  # fmt: skip
    said = "CONV_2D (operator 1) is coarse, saturated"
    one["twin_and_original"] |= {"coarse": [coarse], "grade": "coarse", "said": said}
    (explanation,) = load(told, document, tmp_path).values()
    assert (explanation.verdict, explanation.onset) == ("compression (coarse)", said)
    assert [layer.name for layer in explanation.layers if layer.begins] == ["1 CONV_2D"]


def test_several_causes_have_their_shares(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    one["verdict"] |= {"name": "several", "shares": {"compression": 0.25, "kernel": 0.75}}
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.verdict == "several: 25% compression, 75% kernel (delegate)"


def test_models_without_quantization_are_compared_in_real_values(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    for layer in one["device_and_twin"]["layers"][:2]:
        layer["total"]["max_units"] = None
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.unit == "real values"
    assert [layer.kernel for layer in explanation.layers] == [0.0, 0.1]


@pytest.mark.parametrize(
    "change",
    [
        {"pair": {"name": "laboratory", "fingerprint": "another"}},
        {"findings": {}},
    ],
)
def test_what_is_not_of_this_run_is_left_out(
    told: dict[str, Any], document: Document, tmp_path: Path, change: dict[str, Any]
) -> None:
    assert load(told | change, document, tmp_path) == {}


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
    told: dict[str, Any], document: Document, tmp_path: Path, key: str
) -> None:
    (one,) = told["findings"].values()
    del one[key]
    with pytest.raises(UserError, match="is damaged"):
        load(told, document, tmp_path)


def test_an_input_that_was_replaced_since_is_not_explained(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    document["findings"][0]["sha256"] = "0" * 64
    assert load(told, document, tmp_path) == {}


def test_a_run_that_was_not_explained(document: Document, tmp_path: Path) -> None:
    assert load_explanations(RunDirectory(tmp_path), from_json(document)) == {}


@pytest.mark.parametrize("name", ["compression", "kernel", "none"])
def test_one_cause_has_no_shares(
    told: dict[str, Any], document: Document, tmp_path: Path, name: str
) -> None:
    (one,) = told["findings"].values()
    one["verdict"] |= {"name": name, "which": None, "shares": {"compression": 1.0, "kernel": 0.0}}
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.verdict == name


def test_compression_is_not_said_to_begin_where_device_and_twin_part(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    one["verdict"] |= {"name": "compression", "which": None}
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.onset == f"It begins in no single layer: {ROUNDING}"
    one["twin_and_original"]["most"] = place(1, "CONV_2D")
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.onset == (
        "Twin and original part at 1 CONV_2D by more than quantization explains"
    )
    one["twin_and_original"] |= {"most": None, "layers": []}
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.onset is None


def test_a_layer_without_quantization_in_a_network_with_it_is_known_all_the_same(
    told: dict[str, Any], document: Document, tmp_path: Path
) -> None:
    (one,) = told["findings"].values()
    first, _, last = one["device_and_twin"]["layers"]
    first["total"] = difference(None, 0.0)
    last["total"] = difference(None, 0.25)
    (explanation,) = load(told, document, tmp_path).values()
    assert explanation.unit == "quantization units"
    assert [(layer.kernel, layer.real) for layer in explanation.layers] == [
        (0.0, None),
        (3.0, None),
        (None, 0.25),
    ]
