"""Cases that are checked: the verdict, and the cause that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brief_commands import brief_checks
from called_commands import call_here
from edgeflare.release.check_document import load_check
from public_cases import copied_case

pytestmark = pytest.mark.slow

GIVEN = ("--device", "emulated-xnnpack", "--limit", "40", "--no-near")

DEFECTS = {
    "calibration_0_1": ("range", "input holds 0 to 1"),
    "conv_transpose_axis": ("layer", "TRANSPOSE_CONV (operator 3)"),
    "fp16_mask_nan": ("failures", "MUL (operator 27)"),
    "label_order": ("order", "(zero → nine)"),
    "output_swapped": ("order", "outputs are swapped"),
    "per_tensor_depthwise": ("layer", "DEPTHWISE_CONV_2D (operator 1)"),
    "regression_saturates": ("range", "its range is 0 to 6"),
    "resize_half_pixel": ("file", "half_pixel_centers false"),
    "yolo_concat": ("layer", "one scale for unlike things"),
}
"""By case, the rule that stops it, and words of its sentence."""

HEALTHY = (
    *("android_raw_uint8", "composite_op", "dead_channels", "detection_postprocess"),
    *("gru_dynamic", "int16x8_rank3", "int4_weights", "layernorm_gpu", "lstm_state"),
    *("nchw_tflite", "sparse_densify", "weights_zero_point"),
)


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    with brief_checks():
        yield


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_stopped_and_named(name: str, tmp_path: Path) -> None:
    rule, words = DEFECTS[name]
    case = copied_case(name, tmp_path)
    out = tmp_path / "check"
    said = call_here("check", case, *GIVEN, "--trust", "--out", out)
    assert said.code == 1, said.err
    document = load_check(out / "check.json")
    assert document.verdict == "do-not-ship"
    assert document.cause is not None
    assert document.cause.rule == rule
    assert words in document.sentence


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_healthy_may_ship(name: str, tmp_path: Path) -> None:
    case = copied_case(name, tmp_path)
    said = call_here("check", case, *GIVEN, "--out", tmp_path / "check")
    assert said.code == 0, (said.out, said.err)
    assert load_check(tmp_path / "check" / "check.json").verdict == "ship"
