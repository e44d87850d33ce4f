"""What a dry run says of cases that are taken, or refused in one line that helps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from called_commands import call_here, completed, document_of, refused
from conformed_runs import constructed_conformance
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.presentation.conform_words import headline, tried_words
from edgeflare.conform.record.conform_header import ConformRequest
from edgeflare.conform.rounds.conformance import Conformance
from edgeflare.conform.rounds.model_figures import model_figures, with_tried
from edgeflare.models.model_probe import HostProbe
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter
from public_cases import CASES, copied_case
from state_pairs import write_variable_pair

BUILTIN, MICRO = "emulated-builtin", "emulated-micro"

REAL, WHOLE = schema.TensorType.FLOAT32, schema.TensorType.UINT64

RIGHT = "right on them: original {0}%, twin {0}%, device {0}%"

TAKEN = [
    ("android_raw_uint8", BUILTIN, RIGHT.format("98.4")),
    ("composite_op", BUILTIN, RIGHT.format("98.4")),
    ("gru_dynamic", BUILTIN, RIGHT.format("82.8")),
    ("int16x8_rank3", BUILTIN, RIGHT.format("100.0")),
    ("int16x8_rank3", MICRO, RIGHT.format("100.0")),
    ("sparse_densify", BUILTIN, "twin 96.9%, device 96.9%"),
    ("dead_channels", BUILTIN, "0 of the first 64 seeds already deviate"),
    ("regression_saturates", BUILTIN, "original and device on them: median 60.94, greatest 107.7"),
    ("nchw_tflite", MICRO, RIGHT.format("98.4")),
    (
        "nchw_tflite",
        BUILTIN,
        RIGHT.format("98.4") + " … (1, 3, 16, 16) int8, channels first (NCHW)",
    ),
    ("android_raw_uint8/declared", BUILTIN, RIGHT.format("98.4") + " … black is given as 0, 4, 12"),
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


def said_by_dry_run(pair: Path, device: str = BUILTIN) -> str:
    said = completed("search", pair, "--device", device, "--dry-run")
    return " ".join(said.out.split())


@pytest.mark.slow
@pytest.mark.parametrize(("case", "device", "expected"), TAKEN)
def test_a_case_is_taken(case: str, device: str, expected: str) -> None:
    said = said_by_dry_run(CASES / case, device)
    assert all(part in said for part in expected.split(" … "))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "device", "expected"), REFUSED)
def test_a_case_is_refused_in_one_line(case: str, device: str, expected: str) -> None:
    assert expected in refused("search", CASES / case, "--device", device, "--dry-run")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["detection_postprocess", "detection_postprocess/named"])
def test_objects_beyond_the_number_that_is_given_are_not_read(case: str, tmp_path: Path) -> None:
    pair = copied_case(case, tmp_path)
    images = np.load(pair / "seeds.npz")["images"]
    np.savez(pair / "seeds.npz", images=images[6:10])
    shown = said_by_dry_run(pair)
    assert re.search(r"seed 0: original 1 object: green \.9\d; twin 1 object: green \.9\d", shown)


@pytest.mark.slow
def test_a_rounding_of_the_device_is_said(tmp_path: Path) -> None:
    pair = copied_case("android_raw_uint8", tmp_path)
    with (pair / "pair.toml").open("a") as file:
        file.write('\n[device.preprocess]\nrounding = "truncate"\n')
    shown = said_by_dry_run(pair)
    assert shown.count("inputs rounded truncate") == 1
    assert "on the device, model input = (pixel / 255 - 0.45, 0.4, 0.35)" in shown
    assert "the model's inputs on the device differ from the pair's by at most 0.0165" in shown


@pytest.mark.slow
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
    said = said_by_dry_run(tmp_path)
    for arm in ("original", "twin", "device"):
        assert f"{arm} has no answer to 8 of the first 8 seeds (invalid-output: tflite/ke" in said
    assert said.count("Type UINT64 is unsupported by op Cast") == 3


@pytest.mark.slow
def test_int16_activations_between_floats_decide_as_the_original(tmp_path: Path) -> None:
    pair = copied_case("int16x8_rank3", tmp_path)
    (pair / "float_io.tflite").replace(pair / "compressed.tflite")
    assert RIGHT.format("100.0") in said_by_dry_run(pair)


@pytest.mark.slow
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
    # Its FULLY_CONNECTED of int16 activations with a bias is wrong, see docs/conform-found.md.
    right = re.search(r"original 100.0%, twin 100.0%, device (\d+\.\d)%", shown)
    assert right is not None
    assert float(right[1]) < 50


@pytest.mark.slow
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


@pytest.mark.slow
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
    completed("conform", *model, *device, *drawn, "--out", tmp_path / "run", code=1)
    document = document_of(tmp_path / "run", "conform.json")
    wrong = [one for one in document["findings"] if one["counted"] and one["unit"] == "ulp"]
    assert wrong
    smallest = [one["smallest"]["operators"][0] for one in wrong]
    assert {one["operator"] for one in smallest} == {"MUL"}
    assert "none" not in {one["settings"]["constant"] for one in smallest}


SEARCH = ("--max-queries", "40", "--shrink", "0", "--within", "none", "--fail-on", "none")

DEVICE = ("--device", "emulated-builtin")


@pytest.mark.slow
def test_a_fused_lstm_is_reset_and_what_an_app_gets_without_is_said() -> None:
    said = said_by_dry_run(CASES / "lstm_state")
    assert "original 98.4%, twin 98.4%, device 98.4%" in said
    assert (
        "variables: the original keeps 2 from one inference to the next, arith.constant4,"
        " arith.constant17 of UNIDIRECTIONAL_SEQUENCE_LSTM (operator 0); the compressed model keeps"
        " 2 from one inference to the next, tfl.pseudo_qconst14, tfl.pseudo_qconst15 of"
        " UNIDIRECTIONAL_SEQUENCE_LSTM (operator 0); they are reset before each input" in said
    )
    assert "the twin decides otherwise on 46 of the first 64 seeds" in said
    assert "right on them: 98.4% with, 29.7% without" in said


@pytest.mark.slow
@pytest.mark.parametrize("device", ["emulated-builtin", "emulated-micro"])
def test_a_resource_is_kept_within_a_clip_on_both_runtimes(device: str, tmp_path: Path) -> None:
    said = said_by_dry_run(write_variable_pair(tmp_path / "pair", resource=True, frames=4), device)
    assert "both models keep 1 from one inference to the next, sum of ASSIGN_VARIABLE" in said
    assert "they are reset before each clip of 4 frames, and kept within it" in said
    right = re.search(r"device (\d+\.\d)%", said)
    assert right is not None
    # The label is that of the sum over all frames, of which the last alone tells half.
    assert float(right[1]) > 70


@pytest.mark.slow
def test_without_a_reset_clips_go_on_from_each_other_as_one_sequence(tmp_path: Path) -> None:
    pair = write_variable_pair(tmp_path / "pair", resource=False, frames=4)
    run = tmp_path / "run"
    said = completed("search", pair, *DEVICE, *SEARCH, "--out", run)
    with np.load(pair / "seeds.npz") as seeds:
        clips, labels = seeds["x"], seeds["labels"]
    model = Interpreter(str(pair / "compressed.tflite"))
    model.allocate_tensors()
    (x,), (y,) = model.get_input_details(), model.get_output_details()
    decided: dict[str, list[int]] = {"with": [], "without": []}
    for name, decisions in decided.items():
        model.reset_all_variables()
        for clip in clips:
            if name == "with":
                model.reset_all_variables()
            for frame in clip:
                model.set_tensor(x["index"], frame[None])
                model.invoke()
            decisions.append(int(model.get_tensor(y["index"]).argmax()))
    changed = sum(map(int.__ne__, *decided.values()))
    document = document_of(run)
    assert document["unmutated"]["without_reset"] == {
        "seeds": 24,
        "changed": changed,
        "labelled": 24,
        "right": {name: int((labels == made).sum()) for name, made in decided.items()},
    }
    assert 0 < changed < 24
    assert f"the twin decides otherwise on {changed} of" in " ".join(said.out.split())


@pytest.mark.slow
def test_operators_that_put_out_nothing_are_explained_around(tmp_path: Path) -> None:
    pair, run = write_variable_pair(tmp_path / "pair", resource=True), tmp_path / "run"
    completed("search", pair, *DEVICE, *SEARCH, "--limit", "3", "--out", run)
    said = completed("explain", run)
    told = " ".join(said.out.split())
    assert "FULLY_CONNECTED (operator 5)" in told  # its weights are rounded to sixths
    assert "both models keep 1 from one inference to the next" in told


@pytest.mark.slow
def test_frames_of_a_model_that_keeps_nothing_are_refused(tmp_path: Path) -> None:
    pair = copied_case("gru_dynamic", tmp_path)
    toml = pair / "pair.toml"
    toml.write_text("frames = 2\n" + toml.read_text())
    assert (
        "an input has 2 frames, but the models keep nothing from one to the next, and the last"
        " alone would count"
    ) in refused("search", pair, *DEVICE, "--dry-run")


UNTRIED = {
    "gru_dynamic": (
        {"WHILE": "the operator is not known"},
        "all of the arithmetic of compressed.tflite can be tried (32 of 33 operators)",
    ),
    "sparse_densify": (
        {
            "DENSIFY": "its weights are stored as sparse ones",
            "CONV_2D": "weights that are computed",
            "FULLY_CONNECTED": "weights that are computed",
        },
        "8 % of the arithmetic of compressed.tflite can be tried (4 of 8 operators)",
    ),
    "composite_op": (
        {"STABLEHLO_COMPOSITE": "the operator is not known"},
        "all of the arithmetic of compressed.tflite can be tried (5 of 6 operators)",
    ),
}


@pytest.mark.parametrize("case", UNTRIED)
def test_what_cannot_be_tried_is_named_with_the_reason(case: str) -> None:
    content = (CASES / case / "compressed.tflite").read_bytes()
    reading, cells = read_operators(content), chosen_cells()
    figures = model_figures("compressed.tflite", content, reading, cells)
    reasons, said = UNTRIED[case]
    assert tried_words(figures, "can be") == said
    for one in figures.untried:
        assert reasons[one.operator] in one.why
    assert {one.operator for one in figures.untried} == reasons.keys()
    request = ConformRequest(cells, "uniform", "only", None, 60.0, 0)
    nothing = with_tried(figures, reading, request, Conformance())
    whys = {one.why for one in nothing.untried} - {one.why for one in figures.untried}
    assert whys == {"--graphs runs the model as a whole"}
    assert nothing.arithmetic_tried == nothing.operators_tried == 0
    assert sum(one.arithmetic for one in nothing.untried) == figures.arithmetic
    assert "nothing that computes in compressed.tflite was tried" in headline(
        constructed_conformance([], model=nothing)
    )
