"""Pairs without classes whose seeds say what is right: who is, by the measure of their task."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from called_commands import call_here
from public_cases import copied_case


def outputs_of(pair: Path, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what the original of a pair answers: (inputs, *shape)."""
    model = Interpreter(str(pair / "original.tflite"))
    model.allocate_tensors()
    taken, given = model.get_input_details()[0]["index"], model.get_output_details()[0]["index"]
    answers = []
    for one in inputs:
        model.set_tensor(taken, one[None])
        model.invoke()
        answers.append(model.get_tensor(given)[0])
    return np.stack(answers)


def test_values_are_right_within_the_tolerance(tmp_path: Path) -> None:
    pair = copied_case("regression_saturates", tmp_path)
    images = np.load(pair / "seeds.npz")["images"]
    values = outputs_of(pair, (images / 255.0).astype(np.float32))
    targets = values + 1.0
    targets[:2], targets[2] = values[:2] + 5.0, np.nan
    np.savez(pair / "seeds.npz", images=images, targets=targets)
    run = tmp_path / "run"
    survey = ("survey", pair, "--conditions", "none", "--gate", "accuracy-drop<0.5", "--out", run)
    assert call_here(*survey).code == 1
    document = json.loads((run / "survey.json").read_text())
    known = len(images) - 1
    accuracy = document["unchanged"]["accuracy"]
    assert document["labelled"] == accuracy["twin"]["items"] == known
    assert accuracy["original"]["count"] == known - 2
    assert accuracy["device"]["estimate"] < 0.1
    assert accuracy["drop"]["low"] > 0.8
    assert accuracy["distance"]["original"] == pytest.approx((known - 2 + 10) / known)
    assert accuracy["distance"]["device"]["estimate"] > 40.0


def test_masks_are_right_where_they_overlap_enough(tmp_path: Path) -> None:
    pair = copied_case("resize_half_pixel", tmp_path)
    images = np.load(pair / "seeds.npz")["images"]
    masks = outputs_of(pair, (images / 127.5 - 1.0).astype(np.float32)).argmax(axis=-1)
    masks[:, 0] = 255
    np.savez(pair / "seeds.npz", images=images, targets=masks.astype(np.uint8))
    run = tmp_path / "run"
    search = ("search", pair, "--max-queries", "1", "--fail-on", "harmful", "--out", run)
    shown = " ".join(call_here(*search, "--dry-run").out.split())
    assert f"{len(images)} have targets; right on them: original 100.0%, twin 5" in shown
    assert "mean IoU on them, on average: original 1, twin 0.78" in shown
    call_here(*search)
    document = json.loads((run / "run.json").read_text())
    harm = document["unmutated"]["seeds"]["harm"]
    assert sum(harm.values()) == document["unmutated"]["seeds"]["deviating"]
    assert set(harm) == {"original-right"}
    assert {entry["seed_target"][:5] for entry in document["deviating_seeds"]} == {"paper"}
