"""What a dry run says of cases that are taken, or refused in one line that helps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from called_commands import Said, call_here
from edgeflare.models.model_probe import HostProbe
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter
from public_cases import CASES, copied_case

pytestmark = pytest.mark.slow

BUILTIN, MICRO = "emulated-builtin", "emulated-micro"
REAL, WHOLE = schema.TensorType.FLOAT32, schema.TensorType.UINT64

RIGHT = "right on them: original {0}%, twin {0}%, device {0}%"

TAKEN = [
    ("android_raw_uint8", BUILTIN, RIGHT.format("98.4")),
    ("android_raw_uint8/declared", BUILTIN, RIGHT.format("98.4")),
    ("composite_op", BUILTIN, RIGHT.format("98.4")),
    ("gru_dynamic", BUILTIN, RIGHT.format("82.8")),
    ("int16x8_rank3", BUILTIN, RIGHT.format("100.0")),
    ("int16x8_rank3", MICRO, RIGHT.format("100.0")),
    ("sparse_densify", BUILTIN, "twin 96.9%, device 96.9%"),
    ("dead_channels", BUILTIN, "0 of the first 64 seeds already deviate"),
    ("regression_saturates", BUILTIN, "original and device on them: median 60.94, greatest 107.7"),
    ("nchw_tflite", BUILTIN, RIGHT.format("98.4")),
    ("nchw_tflite", MICRO, RIGHT.format("98.4")),
    ("nchw_tflite", BUILTIN, "twin and device: (1, 3, 16, 16) int8, channels first (NCHW)"),
    ("android_raw_uint8/declared", BUILTIN, "black is given as 0, 4, 12 and white as 216, 237, 25"),
    ("odd_inputs/bool_mask", BUILTIN, RIGHT.format("100.0")),
    ("odd_inputs/dynamic_batch", BUILTIN, RIGHT.format("93.3")),
    ("odd_inputs/int64_tokens", BUILTIN, RIGHT.format("100.0")),
    ("odd_inputs/normalizes_inside", BUILTIN, "check scale, mean, std and channels of the prepro"),
    ("odd_inputs/two_signatures", BUILTIN, RIGHT.format("93.3")),
]

REFUSED = [
    ("composite_op", MICRO, "TFLite Micro has no operator STABLEHLO_COMPOSITE"),
    ("gru_dynamic", MICRO, "TFLite Micro has no operator SELECT"),
    ("sparse_densify", MICRO, "TFLite Micro has no operator DENSIFY"),
    ("odd_inputs/flex", BUILTIN, "Select TensorFlow op(s)"),
    (
        "odd_inputs/argmax_inside",
        BUILTIN,
        "the output is what ARG_MAX reads, 'functional_1/dense_1/MatMul;functional_1/dense_1/Bias",
    ),
]


def dry_run(pair: Path, device: str) -> Said:
    return call_here("search", pair, "--device", device, "--dry-run")


@pytest.mark.parametrize(("case", "device", "expected"), TAKEN)
def test_a_case_is_taken(case: str, device: str, expected: str) -> None:
    said = dry_run(CASES / case, device)
    assert said.code == 0, said.err
    assert expected in " ".join(said.out.split())


@pytest.mark.parametrize(("case", "device", "expected"), REFUSED)
def test_a_case_is_refused_in_one_line(case: str, device: str, expected: str) -> None:
    said = dry_run(CASES / case, device)
    assert said.code == 2
    assert expected in said.complaint()


@pytest.mark.parametrize("case", ["detection_postprocess", "detection_postprocess/named"])
def test_objects_beyond_the_number_that_is_given_are_not_read(case: str, tmp_path: Path) -> None:
    pair = copied_case(case, tmp_path)
    images = np.load(pair / "seeds.npz")["images"]
    np.savez(pair / "seeds.npz", images=images[6:10])
    said = dry_run(pair, BUILTIN)
    assert said.code == 0, said.err
    assert said.err == ""
    shown = " ".join(said.out.split())
    assert re.search(r"seed 0: original 1 object: green \.9\d; twin 1 object: green \.9\d", shown)


def test_a_rounding_of_the_device_is_said(tmp_path: Path) -> None:
    pair = copied_case("android_raw_uint8", tmp_path)
    with (pair / "pair.toml").open("a") as file:
        file.write('\n[device.preprocess]\nrounding = "truncate"\n')
    said = dry_run(pair, BUILTIN)
    assert said.code == 0, said.err
    shown = " ".join(said.out.split())
    assert shown.count("inputs rounded truncate") == 1
    assert "on the device, model input = (pixel / 255 - 0.45, 0.4, 0.35)" in shown
    assert "the model's inputs on the device differ from the pair's by at most 0.0165" in shown


def test_what_the_runtimes_say_of_inputs_that_they_refuse_is_said_once(tmp_path: Path) -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("x", "y"))
    unsupported = graph.tensor("unsupported", (1, 3), "UINT64")
    for given, made, kinds in ((x, unsupported, (REAL, WHOLE)), (unsupported, y, (WHOLE, REAL))):
        options = schema.CastOptionsT()
        options.inDataType, options.outDataType = kinds
        graph.operator("CAST", [given], [made], options)
    model = graph.save(tmp_path / "model.tflite", [x], [y])
    np.savez(tmp_path / "seeds.npz", x=np.ones((8, 1, 3), np.float32))
    (tmp_path / "pair.toml").write_text(
        f'original = "{model}"\ncompressed = "{model}"\nseeds = "seeds.npz"\n'
        '[inputs.x]\ndomain = "array"\nlowest = -1.0\nhighest = 1.0\n'
    )
    said = " ".join(dry_run(tmp_path, BUILTIN).out.split())
    for arm in ("original", "twin", "device"):
        assert f"{arm} has no answer to 8 of the first 8 seeds (invalid-output: tflite/ke" in said
    assert said.count("Type UINT64 is unsupported by op Cast") == 3


def test_int16_activations_between_floats_decide_as_the_original(tmp_path: Path) -> None:
    pair = copied_case("int16x8_rank3", tmp_path)
    (pair / "float_io.tflite").replace(pair / "compressed.tflite")
    said = dry_run(pair, BUILTIN)
    assert RIGHT.format("100.0") in " ".join(said.out.split())


@pytest.mark.old_board
def test_the_old_runtime_is_wrong_about_int16_activations_and_that_is_shown(
    tmp_path: Path, old_board_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    board = tmp_path / "device_profiles" / "board.toml"
    board.parent.mkdir()
    profile = f'transport = "emulated"\npython = "{old_board_python}"\nkernels = "builtin"\n'
    board.write_text(profile)
    said = call_here("search", CASES / "int16x8_rank3", "--device", "board", "--trust", "--dry-run")
    shown = " ".join(said.out.split())
    assert "tflite-runtime 2.14.0" in shown
    # Its FULLY_CONNECTED of int16 activations with a bias is wrong, see docs/conform.md.
    right = re.search(r"original 100.0%, twin 100.0%, device (\d+\.\d)%", shown)
    assert right is not None
    assert float(right[1]) < 50


def test_filters_that_are_zero_compute_the_same_on_all_kernel_sets() -> None:
    content = (CASES / "dead_channels" / "compressed.tflite").read_bytes()
    rows = np.random.default_rng(0).integers(-128, 128, (4, 1, 16, 16, 1)).astype(np.int8)
    kernels: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")
    first, *others = [_answers(content, one, rows) for one in kernels]
    assert len({one.tobytes() for one in first}) > 1
    for other in others:
        assert all(map(np.array_equal, first, other))


def _answers(content: bytes, kernels: Kernels, rows: Any) -> list[Any]:
    probe = HostProbe(content, kernels)
    try:
        return [probe.run([row])[0] for row in rows]
    finally:
        probe.close()


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_layer_normalization_is_right_on_the_gpu_whose_mul_by_a_constant_is_not(
    tmp_path: Path,
) -> None:
    case, device = CASES / "layernorm_gpu", ("--device", "emulated-gpu")
    said = call_here("search", case, *device, "--first", "40", "--dry-run")
    assert "0 of the first 40 seeds already deviate" in said.out
    model = ("--from", case / "compressed.tflite", "--ops", "MUL", "--dtype", "float32")
    drawn = ("--models", "32", "--time-limit", "25s")
    said = call_here("conform", *model, *device, *drawn, "--out", tmp_path / "run")
    assert said.code == 1, said.err
    document = json.loads((tmp_path / "run" / "conform.json").read_bytes())
    wrong = [one for one in document["findings"] if one["counted"] and one["unit"] == "ulp"]
    assert wrong
    smallest = [one["smallest"]["operators"][0] for one in wrong]
    assert {one["operator"] for one in smallest} == {"MUL"}
    assert "none" not in {one["settings"]["constant"] for one in smallest}
