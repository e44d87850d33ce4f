"""A pair whose files have their constants behind the flatbuffer, as a user brings it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.models.tflite_graph import Graph
from outside_buffers import with_buffers_outside
from reproductions import reproduce, unpacked
from tampering import constant_of, with_constant

FAULTY = 2
"""The operator in whose biases there is a fault, a CONV_2D."""


@pytest.mark.slow
def test_it_is_searched_explained_and_exported(
    example: Path, small: tuple[str, ...], call: Callable[..., Any], tmp_path: Path
) -> None:
    pair = Path(shutil.copytree(example, tmp_path / "pair"))
    original, compressed = pair / "original.tflite", pair / "compressed.tflite"
    original.write_bytes(with_buffers_outside(original.read_bytes()))
    faulty = with_constant(
        compressed.read_bytes(),
        constant_of(compressed.read_bytes(), FAULTY, 2),
        lambda biases: biases + np.abs(biases).max() // 4,
    )
    compressed.write_bytes(with_buffers_outside(faulty))
    run, options = tmp_path / "run", ("--device", "emulated-xnnpack", "--fail-on", "none")
    assert call("search", pair, *small, *options, "--out", run).code == 0
    found = json.loads((run / "run.json").read_bytes())
    seed_id = (found["findings"] + found["deviating_seeds"])[0]["seed_id"]

    assert call("explain", run, seed_id).code == 0
    (said,) = json.loads((run / "explain.json").read_bytes())["findings"].values()
    assert said["twin_and_original"]["most"]["operator"] == FAULTY
    assert call("export", run, seed_id, "--out", tmp_path / "f.zip").code == 0
    folder = unpacked(tmp_path / "f.zip", tmp_path / "f")
    (operator,) = Graph((folder / "operator.tflite").read_bytes()).operators
    assert operator.name == "CONV_2D"
    assert reproduce(folder).returncode == 0
