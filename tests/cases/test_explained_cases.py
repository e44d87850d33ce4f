"""Cases that are explained: which layer or order of the compressed file is blamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from called_commands import call_here, completed, document_of
from edgeflare.core.answer import Answer
from edgeflare.diagnose.arm_probe import State
from edgeflare.diagnose.compression_error import UNJUDGED, CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.output_stage import ModelReader
from edgeflare.errors import UserError
from edgeflare.models.model_probe import HostProbe, ProbeFailed, Values
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from public_cases import copied_case
from tampering import InterpreterProbe, class_reader

pytestmark = pytest.mark.slow

PIXEL: Mapping[str, float] = {"calibration_0_1": 1.0}
"""What one gray level is for the models; else a 255th."""


class CrashingProbe(InterpreterProbe):
    """A probe of a model that crashes on dark inputs."""

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        if inputs[0].mean() < 80:
            raise ProbeFailed("crash: SIGSEGV")
        return super().run(inputs)


def localized(
    case: Path,
    compressed: str,
    whole: type[InterpreterProbe] = InterpreterProbe,
    reader: Callable[[bytes], ModelReader] = class_reader,
) -> CompressionError:
    """What compression did on one of a case's seeds, beside the others.

    Args:
        case: its folder.
        compressed: the name of the file.
        whole: runs the original with all its tensors.
        reader: reads the answers of the original.

    """
    original, content = (case / "original.tflite").read_bytes(), (case / compressed).read_bytes()
    graph = Graph(content)
    given = graph.tensors[graph.inputs[0]]
    with np.load(case / "seeds.npz") as arrays:
        images = arrays["images"].astype(np.float32) * np.float32(PIXEL.get(case.name, 1 / 255))
    probe = InterpreterProbe(content, capture=True)

    def seen(at: int) -> tuple[State, Values]:
        image = images[at : at + 1]
        raw = np.round(image / np.float32(given.scales[0])) + given.zero_points[0]
        limits = np.iinfo(given.dtype)
        encoded = np.clip(raw, limits.min, limits.max).astype(given.dtype)
        made = dict(zip(probe.made, probe.run([encoded]), strict=True))
        return {graph.inputs[0]: encoded, **made}, image

    localizer = CompressionLocalizer(
        graph,
        Graph(original),
        original,
        lambda model, capture: (whole if capture else InterpreterProbe)(model, capture=capture),
        reader(original),
        lambda: [seen(at) for at in range(1, len(images), len(images) // 16)],
    )
    with closing(localizer):
        return localizer.find(*seen(0))


def named(found: CompressionError) -> list[tuple[str, int, str, str]]:
    return [(one.name, one.operator_index, one.part, one.kind) for one in found.coarse]


def test_an_input_that_is_cut_off(tmp_path: Path) -> None:
    case = copied_case("calibration_0_1", tmp_path)
    found = localized(case, "compressed.tflite")
    assert named(found) == [("INPUT", -1, "output", "saturated")]
    assert found.grade == "coarse"
    (cause,) = found.coarse
    assert cause.share > 0.9
    assert "its range is 0 to 1, the values 0 to 255" in cause.why
    assert "% of them are cut off" in cause.why
    assert found.input_cut_off is not None
    assert found.input_cut_off.below == 0
    assert found.input_cut_off.above > 0.9
    # The layer behind holds the few values that it is given: it is not blamed.
    assert found.layers[0].cut_off is not None


def test_seeds_on_which_the_original_crashes_are_passed_over(tmp_path: Path) -> None:
    case = copied_case("calibration_0_1", tmp_path)
    with np.load(case / "seeds.npz") as arrays:
        means = arrays["images"].mean(axis=(1, 2, 3))
    assert means[0] >= 80 > means[1 :: len(means) // 16].min()
    found = localized(case, "compressed.tflite", CrashingProbe)
    assert named(found) == [("INPUT", -1, "output", "saturated")]


class RefusingReader(ModelReader):
    """A reader that calls a function of the pair that refuses its input."""

    def answers(self, *_: object) -> list[Answer]:
        raise UserError("decode() raised ValueError")


def test_where_the_error_of_the_margin_is_not_known_nothing_is_called_healthy(
    tmp_path: Path,
) -> None:
    case = copied_case("calibration_0_1", tmp_path)

    def refusing(content: bytes) -> ModelReader:
        known = class_reader(content)
        return RefusingReader(known.stage, known.signature)

    found = localized(case, "good.tflite", reader=refusing)
    assert found.layers
    assert (found.grade, found.said, found.note) == (None, "", UNJUDGED)


def test_one_scale_for_channels_of_unlike_size(tmp_path: Path) -> None:
    case = copied_case("per_tensor_depthwise", tmp_path)
    assert named(localized(case, "compressed.tflite")) == [
        ("DEPTHWISE_CONV_2D", 1, "weights", "one-scale-for-unlike-channels"),
        ("CONV_2D", 2, "weights", "one-scale-for-unlike-channels"),
    ]


@pytest.mark.parametrize(
    ("name", "file"),
    [("calibration_0_1", "good.tflite"), ("per_tensor_depthwise", "per_channel.tflite")],
)
def test_a_healthy_file_has_ordinary_rounding_in_many_layers(
    name: str, file: str, tmp_path: Path
) -> None:
    found = localized(copied_case(name, tmp_path), file)
    assert (found.grade, found.coarse, found.most) == ("spread", (), None)
    shares = [one.share for one in found.spread]
    assert 0 < len(shares) <= 3
    assert shares == sorted(shares, reverse=True)
    assert "which is what healthy files have" in found.said


def of_run(pair: Path, compressed: str, *functions: str) -> list[dict[str, Any]]:
    """What `edgeflare explain` says of compression, of each finding on some seeds."""
    run = pair / f"run of {compressed}"
    given = ("--compressed", pair / compressed, "--first", "2", "--max-queries", "60")
    completed("search", pair, "--trust", *given, "--fail-on", "none", "--out", run)
    named = [part for one in functions for part in ("--function", f"{pair / one}")]
    completed("explain", run, "--trust", *named)
    findings = document_of(run, "explain.json")["findings"].values()
    assert findings
    assert {one["verdict"]["name"] for one in findings} == {"compression"}
    for one in findings:
        assert one["verdict"]["which"] == one["twin_and_original"]["grade"]
    return [one["twin_and_original"] for one in findings]


def test_a_value_that_is_cut_off(tmp_path: Path) -> None:
    for error in of_run(copied_case("regression_saturates", tmp_path), "compressed.tflite"):
        (coarse,) = error["coarse"]
        assert (coarse["operator_index"], coarse["name"]) == (4, "FULLY_CONNECTED")
        assert coarse["kind"] == "saturated"
        assert "its range is 0 to 6," in coarse["why"]
        last = error["layers"][-1]
        assert last["operator_index"] == 4
        assert last["cut_off"] == {"below": 0.0, "above": 1.0}


def test_one_scale_for_boxes_and_scores(tmp_path: Path) -> None:
    pair = copied_case("yolo_concat", tmp_path)
    for error in of_run(pair, "compressed.tflite", "decode.py:decode"):
        (coarse,) = error["coarse"]
        assert (coarse["operator_index"], coarse["name"]) == (7, "QUANTIZE")
        assert coarse["kind"] == "one-scale-for-unlike-things"
        assert "CONCATENATION" in coarse["why"]
        assert "which leaves 2 levels" in coarse["why"]
        (row,) = (one for one in error["layers"] if one["operator_index"] == 7)
        assert row["matched_by"] == "conversion"
        assert not row["beyond"]


def test_ranges_are_taken_evenly_through_the_seeds(tmp_path: Path) -> None:
    """Sorted seeds are alike one after the other: most of these have no value that is cut off."""
    pair = copied_case("calibration_0_1", tmp_path)
    with np.load(pair / "seeds.npz") as arrays:
        images = arrays["images"]
    dark = np.tile(images[:1] // 255, (600, 1, 1, 1))
    ordered = np.concatenate([dark[:1], images[:3], dark, *[images] * 9])
    np.savez(pair / "seeds.npz", images=ordered)
    for error in of_run(pair, "compressed.tflite"):
        assert [one["kind"] for one in error["coarse"]] == ["saturated"]


SEARCH = ("--max-queries", "20", "--shrink", "0", "--within", "none", "--fail-on", "none")


def explained(pair: Path, *options: str) -> tuple[str, list[dict[str, Any]]]:
    """Search a pair and explain what is found; return what is printed, and the entries."""
    run = pair / "run"
    completed("search", pair, *SEARCH, *options, "--out", run)
    said = completed("explain", run)
    document = document_of(run, "explain.json")
    return " ".join(said.out.split()), list(document["findings"].values())


def test_channels_first_and_last_lead_to_the_same_findings_and_layers(tmp_path: Path) -> None:
    answers = []
    for last in ((), ("original",), ("compressed",)):
        pair = copied_case("nchw_tflite", tmp_path / "_".join(last))
        for name in last:
            file = pair / f"{name}.tflite"
            file.write_bytes(without_first_operator(file.read_bytes()))
        said, found = explained(pair, "--limit", "1", "--max-queries", "100")
        assert "not seen" not in said
        (finding,) = document_of(pair / "run")["findings"]
        layers = found[0]["twin_and_original"]["layers"]
        seen = {layer["name"]: layer["residual"] for layer in layers}
        seen.pop("TRANSPOSE", None)  # only where both files have it
        answers.append((finding["labels"], finding["distortion"], seen))
    assert answers[1:] == answers[:1] * 2
    assert {"CONV_2D", "FULLY_CONNECTED"} <= answers[0][2].keys()


def without_first_operator(content: bytes) -> bytes:
    """A file whose input is what its first operator makes of it: with its channels last."""
    model = read_model(content)
    graph = model.subgraphs[0]
    (made,) = graph.operators.pop(0).outputs
    graph.inputs = [made]
    for signature in model.signatureDefs or []:
        signature.inputs[0].tensorIndex = made
    return written(model)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_no_layer_before_a_split_and_its_sum_is_blamed_on_the_accelerator(tmp_path: Path) -> None:
    pair = copied_case("gpu_split_add", tmp_path)
    _, found = explained(pair, "--device", "emulated-gpu", "--find", "kernel", "--first", "2")
    assert len(found) == 2
    for one in found:
        where = one["device_and_twin"]
        assert one["verdict"]["which"] == "gpu"
        assert where["most"] is None
        # Operator 8 is the SPLIT, and 9 the ADD of its halves.
        assert where["onset"] is None or where["onset"]["operator_index"] >= 8
        hidden = {layer["operator_index"] for layer in where["layers"] if layer["hidden"]}
        assert {0, 8} <= hidden
        assert "SPLIT (operator 8)" in where["note"]


def test_int4_weights_are_read(tmp_path: Path) -> None:
    _, found = explained(copied_case("int4_weights", tmp_path), "--first", "4")
    assert found
    for one in found:
        layers = {layer["name"]: layer for layer in one["twin_and_original"]["layers"]}
        # Four bits are rounded to the nearest of their own steps.
        for name in ("CONV_2D", "FULLY_CONNECTED"):
            assert 0.4 < layers[name]["constants"] <= layers[name]["constants_explained"] < 0.6
        assert one["twin_and_original"]["most"] is None


def test_the_layers_of_a_network_with_a_state_are_seen_and_rounding_in_it_is_no_fault(
    tmp_path: Path,
) -> None:
    said, found = explained(
        copied_case("lstm_state", tmp_path), "--first", "3", "--max-queries", "120"
    )
    assert found
    assert "not seen" not in said
    for one in found:
        layers = one["twin_and_original"]["layers"]
        assert layers[0]["name"] == "UNIDIRECTIONAL_SEQUENCE_LSTM"
        assert layers[0]["constants"] <= layers[0]["constants_explained"]
        assert not any(layer["beyond"] for layer in layers)
        assert all(layer["own"] for layer in one["device_and_twin"]["layers"])


def test_weights_that_are_rounded_along_the_wrong_axis_are_blamed(tmp_path: Path) -> None:
    _, found = explained(copied_case("conv_transpose_axis", tmp_path), "--first", "2")
    assert len(found) == 2
    for one in found:
        most = one["twin_and_original"]["most"]
        assert (most["name"], most["operator_index"]) == ("TRANSPOSE_CONV", 3)


def test_the_layers_of_a_detector_with_its_own_post_processing_are_seen(tmp_path: Path) -> None:
    """The rows beyond its number of objects are as the memory was, and tell nothing."""
    pair = copied_case("detection_postprocess/named", tmp_path)
    said, found = explained(pair, "--first", "3", "--max-queries", "40")
    assert found
    assert "not seen" not in said
    for one in found:
        where, error = one["device_and_twin"], one["twin_and_original"]
        assert where["method"] == "capture"
        assert where["perturbation"] is None
        assert error["layers"][-1]["name"] == "TFLite_Detection_PostProcess"
        for vote in one["evidence"]["votes"]:
            assert len(set(vote["outputs_crc32"])) == 1
        assert error["most"] is None


def test_filters_that_are_all_zero_are_no_fault(tmp_path: Path) -> None:
    pair = copied_case("dead_channels", tmp_path)
    original, compressed = (
        Graph((pair / name).read_bytes()) for name in ("original.tflite", "compressed.tflite")
    )
    content = (pair / "original.tflite").read_bytes()
    with np.load(pair / "seeds.npz") as seeds:
        images = next(iter(seeds.values()))[:4].astype(np.float32) / 255
    localizer = CompressionLocalizer(
        compressed,
        original,
        content,
        lambda model, capture: HostProbe(model, "xnnpack", capture=capture),
        class_reader(content),
    )
    given = compressed.tensors[compressed.inputs[0]]
    with (
        closing(localizer),
        HostProbe((pair / "compressed.tflite").read_bytes(), "xnnpack", capture=True) as probe,
    ):
        for image in images.reshape(-1, *given.shape):
            raw = given.raw(image.astype(np.float64)) if given.scales else image
            twin = dict(zip(probe.made, probe.run([raw]), strict=True))
            found = localizer.find({compressed.inputs[0]: raw, **twin}, image)
            assert found.layers
            assert (found.beyond, found.coarse, found.note) == ((), (), "")


BEGINS = "it begins in MUL (operator 27), whose constant 'tfl.dequantize6' holds infinity"


def test_a_constant_that_is_infinite_in_float16_is_named(tmp_path: Path) -> None:
    pair, run = copied_case("fp16_mask_nan", tmp_path), tmp_path / "run"
    looked = call_here("search", pair, "--dry-run", "--first", "4")
    said = " ".join(looked.out.split())
    assert "the twin puts out NaN on 4 of the first 4 seeds" in said
    assert f"the original nowhere; in the compressed file {BEGINS}" in said
    assert "check the preprocessing" not in said
    completed(
        "search", pair, "--first", "2", "--max-queries", "3", "--fail-on", "none", "--out", run
    )
    (warning,) = document_of(run)["warnings"]
    assert warning.startswith("the twin puts out NaN on 2 of 2 seeds and the device puts out NaN")
    explained = completed("explain", run)
    assert "warning" not in explained.err.lower()
    for finding in document_of(run, "explain.json")["findings"].values():
        assert finding["verdict"]["name"] == "compression"
        assert finding["verdict"]["why"].endswith(
            f"NaN on twin and device: {BEGINS}; original is finite"
        )
        assert finding["non_finite"]["original"] is None
        most = finding["twin_and_original"]["most"]
        assert (most["operator_index"], most["name"]) == (27, "MUL")
    completed("explain", run, "0")
    completed("report", run, "--html")
    assert "NaN on twin and device" in (run / "report.html").read_text()


def test_a_resize_by_another_rule_is_named_and_the_healthy_file_is_not_blamed(
    tmp_path: Path,
) -> None:
    pair = copied_case("resize_half_pixel", tmp_path)
    _, found = explained(pair, "--first", "2", "--max-queries", "60")
    assert found
    for finding in found:
        error = finding["twin_and_original"]
        assert finding["verdict"]["name"] == "compression"
        assert (error["most"]["operator_index"], error["most"]["name"]) == (4, "RESIZE_BILINEAR")
        (named,) = (one for one in error["layers"] if one["operator_index"] == 4)
        assert named["margin_share"] > 0.5
        assert named["options"] == [
            {"name": "half_pixel_centers", "compressed": False, "original": True}
        ]
        assert "has half_pixel_centers false, the original true" in finding["verdict"]["why"]
    pair = copied_case("resize_half_pixel", tmp_path / "healthy")
    (pair / "good.tflite").replace(pair / "compressed.tflite")
    _, healthy = explained(pair, "--first", "4", "--max-queries", "60")
    assert healthy
    for finding in healthy:
        layers = finding["twin_and_original"]["layers"]
        assert not [
            one
            for one in layers
            if one["options"] or (one["operator_index"] == 4 and one["beyond"])
        ]


@pytest.mark.parametrize(
    ("case", "said", "agreement"),
    [
        (
            "label_order",
            "the compressed model's classes are the original's in another order: (zero → nine), "
            "(one → four), (two → eight), (three → seven), (four → two), (five → one) and 3 more; ",
            "mapped 100%",
        ),
        (
            "output_swapped",
            "the compressed model's outputs are swapped against the original's: "
            "(Identity → Identity_1), (Identity_1 → Identity); ",
            "swapped 98%",
        ),
    ],
)
def test_another_order_is_said_first_and_is_the_verdict(
    case: str, said: str, agreement: str, tmp_path: Path
) -> None:
    pair = copied_case(case, tmp_path)
    dry = call_here("search", pair, "--dry-run")
    assert "warning: " + said in " ".join(dry.out.split())
    run = tmp_path / "run"
    call_here(
        *("search", pair, "--out", run, "--max-queries", "1", "--strengthen", "0", "--shrink", "0")
    )
    document = document_of(run)
    assert document["warnings"][0].startswith(said)
    assert document["warnings"][0].endswith(agreement)
    assert not document["unmutated"]["systematic"]["flows"]
    seed = document["deviating_seeds"][0]["seed_id"]
    call_here("explain", run, str(seed))
    explained = document_of(run, "explain.json")["findings"][str(seed)]
    assert explained["verdict"]["name"] == "other-order"
    assert explained["verdict"]["why"] == document["warnings"][0]
    assert explained["twin_and_original"]["layers"] == []


def test_labels_in_another_order_are_said_of_the_original(tmp_path: Path) -> None:
    """They count from 1. The two files are equal, so nothing is said of the compressed one."""
    pair = copied_case("label_order", tmp_path)
    content = dict(np.load(pair / "seeds.npz"))
    content["labels"] = (content["labels"] + 1) % 10
    np.savez(pair / "seeds.npz", **content)
    dry = call_here("search", pair, "--compressed", pair / "original.tflite", "--dry-run")
    (warning,) = [one for one in dry.out.split("warning: ")[1:] if "order" in one]
    assert " ".join(warning.split()).startswith(
        "the original's classes are the labels' in another order: (zero → nine), (one → zero), "
    )
    assert not any(word in dry.out for word in ("flow to", "score on", "cut off"))
