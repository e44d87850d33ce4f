"""Models with variables: they are named, reset, and it is said what hangs on the reset."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from called_commands import call_here
from public_cases import CASES, copied_case
from state_pairs import write_variable_pair

pytestmark = pytest.mark.slow

SEARCH = ("--max-queries", "40", "--shrink", "0", "--within", "none", "--fail-on", "none")
DEVICE = ("--device", "emulated-builtin")


def said_by_dry_run(pair: Path, device: str = "emulated-builtin") -> str:
    said = call_here("search", pair, "--device", device, "--dry-run")
    assert said.code == 0, said.err
    return " ".join(said.out.split())


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


@pytest.mark.parametrize("device", ["emulated-builtin", "emulated-micro"])
def test_a_resource_is_kept_within_a_clip_on_both_runtimes(device: str, tmp_path: Path) -> None:
    said = said_by_dry_run(write_variable_pair(tmp_path / "pair", resource=True, frames=4), device)
    assert "both models keep 1 from one inference to the next, sum of ASSIGN_VARIABLE" in said
    assert "they are reset before each clip of 4 frames, and kept within it" in said
    right = re.search(r"device (\d+\.\d)%", said)
    assert right is not None
    # The label is that of the sum over all frames, of which the last alone tells half.
    assert float(right[1]) > 70


def test_without_a_reset_clips_go_on_from_each_other_as_one_sequence(tmp_path: Path) -> None:
    pair = write_variable_pair(tmp_path / "pair", resource=False, frames=4)
    run = tmp_path / "run"
    said = call_here("search", pair, *DEVICE, *SEARCH, "--out", run)
    assert said.code == 0, said.err
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
    document = json.loads((run / "run.json").read_bytes())
    assert document["unmutated"]["without_reset"] == {
        "images": 24,
        "changed": changed,
        "labelled": 24,
        "right": {name: int((labels == made).sum()) for name, made in decided.items()},
    }
    assert 0 < changed < 24
    assert f"the twin decides otherwise on {changed} of" in " ".join(said.out.split())


def test_operators_that_put_out_nothing_are_explained_around(tmp_path: Path) -> None:
    pair, run = write_variable_pair(tmp_path / "pair", resource=True), tmp_path / "run"
    found = call_here("search", pair, *DEVICE, *SEARCH, "--limit", "3", "--out", run)
    assert found.code == 0, found.err
    said = call_here("explain", run)
    assert said.code == 0, said.err
    told = " ".join(said.out.split())
    assert "FULLY_CONNECTED (operator 5)" in told  # its weights are rounded to sixths
    assert "both models keep 1 from one inference to the next" in told


def test_frames_of_a_model_that_keeps_nothing_are_refused(tmp_path: Path) -> None:
    pair = copied_case("gru_dynamic", tmp_path)
    toml = pair / "pair.toml"
    toml.write_text("frames = 2\n" + toml.read_text())
    said = call_here("search", pair, *DEVICE, "--dry-run")
    assert said.code == 2
    assert "frames is 2, but the models keep nothing from one frame to the next" in said.complaint()
