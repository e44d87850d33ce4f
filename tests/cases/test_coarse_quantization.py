"""Files that are quantized coarsely: the layer is named with the kind, and healthy ones are not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from called_commands import call_here
from edgeflare.core.answer import Answer
from edgeflare.diagnose.compression_error import UNJUDGED, CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.output_stage import ModelReader
from edgeflare.diagnose.probed_arm import State
from edgeflare.errors import UserError
from edgeflare.models.model_probe import ProbeFailed, Values
from edgeflare.models.tflite_graph import Graph
from public_cases import copied_case
from tampering import InterpreterProbe, class_reader

PIXEL: Mapping[str, float] = {"calibration_0_1": 1.0}
"""What one gray level is for the models; else a 255th."""


class CrashingProbe(InterpreterProbe):
    """A probe of a model that crashes on dark inputs."""

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        if inputs[0].mean() < 80:
            raise ProbeFailed("crash: SIGSEGV")
        return super().run(inputs)


def explained(
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
    return [(one.layer.name, one.layer.operator, one.part, one.kind) for one in found.coarse]


def test_an_input_that_is_cut_off(tmp_path: Path) -> None:
    case = copied_case("calibration_0_1", tmp_path)
    found = explained(case, "compressed.tflite")
    assert named(found) == [("INPUT", -1, "output", "saturated")]
    assert found.grade == "coarse"
    (cause,) = found.coarse
    assert cause.share > 0.9
    assert "its range is 0 to 1, the values 0 to 255" in cause.why
    assert "% of them are cut off" in cause.why
    below, above = found.input_cut_off or (0.0, 0.0)
    assert below == 0
    assert above > 0.9
    # The layer behind holds the few values that it is given: it is not blamed.
    assert found.layers[0].cut_off is not None


def test_seeds_on_which_the_original_crashes_are_passed_over(tmp_path: Path) -> None:
    case = copied_case("calibration_0_1", tmp_path)
    with np.load(case / "seeds.npz") as arrays:
        means = arrays["images"].mean(axis=(1, 2, 3))
    assert means[0] >= 80 > means[1 :: len(means) // 16].min()
    found = explained(case, "compressed.tflite", CrashingProbe)
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

    found = explained(case, "good.tflite", reader=refusing)
    assert found.layers
    assert (found.grade, found.said, found.note) == (None, "", UNJUDGED)


def test_one_scale_for_channels_of_unlike_size(tmp_path: Path) -> None:
    case = copied_case("per_tensor_depthwise", tmp_path)
    assert named(explained(case, "compressed.tflite")) == [
        ("DEPTHWISE_CONV_2D", 1, "weights", "one scale for unlike channels"),
        ("CONV_2D", 2, "weights", "one scale for unlike channels"),
    ]


@pytest.mark.parametrize(
    ("name", "file"),
    [("calibration_0_1", "good.tflite"), ("per_tensor_depthwise", "per_channel.tflite")],
)
def test_a_healthy_file_has_ordinary_rounding_in_many_layers(
    name: str, file: str, tmp_path: Path
) -> None:
    found = explained(copied_case(name, tmp_path), file)
    assert (found.grade, found.coarse, found.most) == ("spread", (), None)
    shares = [share for _, share in found.spread]
    assert 0 < len(shares) <= 3
    assert shares == sorted(shares, reverse=True)
    assert "which is what healthy files have" in found.said


def of_run(pair: Path, compressed: str, *functions: str) -> list[dict[str, Any]]:
    """What `edgeflare explain` says of compression, of each finding on some seeds."""
    run = pair / f"run of {compressed}"
    given = ("--compressed", pair / compressed, "--first", "4", "--max-queries", "20")
    assert call_here("search", pair, "--trust", *given, "--fail-on", "none", "--out", run).code == 0
    named = [part for one in functions for part in ("--function", f"{pair / one}")]
    assert call_here("explain", run, "--trust", *named).code == 0
    findings = json.loads((run / "explain.json").read_text())["findings"].values()
    assert findings
    assert {one["verdict"]["name"] for one in findings} == {"compression"}
    for one in findings:
        assert one["verdict"]["which"] == one["twin_and_original"]["grade"]
    return [one["twin_and_original"] for one in findings]


@pytest.mark.slow
def test_a_value_that_is_cut_off(tmp_path: Path) -> None:
    for error in of_run(copied_case("regression_saturates", tmp_path), "compressed.tflite"):
        (coarse,) = error["coarse"]
        assert (coarse["operator"], coarse["name"]) == (4, "FULLY_CONNECTED")
        assert coarse["kind"] == "saturated"
        assert "its range is 0 to 6," in coarse["why"]
        last = error["layers"][-1]
        assert last["operator"] == 4
        assert last["cut_off"] == {"below": 0.0, "above": 1.0}


@pytest.mark.slow
def test_one_scale_for_boxes_and_scores(tmp_path: Path) -> None:
    pair = copied_case("yolo_concat", tmp_path)
    for error in of_run(pair, "compressed.tflite", "decode.py:decode"):
        (coarse,) = error["coarse"]
        assert (coarse["operator"], coarse["name"]) == (7, "QUANTIZE")
        assert coarse["kind"] == "one scale for unlike things"
        assert "CONCATENATION" in coarse["why"]
        assert "which leaves 2 levels" in coarse["why"]
        (row,) = (one for one in error["layers"] if one["operator"] == 7)
        assert row["matched_by"] == "conversion"
        assert not row["beyond"]


@pytest.mark.slow
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
