"""Where findings begin, on networks with depthwise layers and residual connections.

What `edgeflare explain` says of a search's findings is held against beginnings of the network that
are cut out one after the other and run without it, by the runtimes themselves.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from called_commands import completed
from edgeflare.models.graph_parts import Part, extract
from edgeflare.models.model_probe import Values
from edgeflare.models.tflite_graph import Graph
from networks import write_pair
from tampering import run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def explained(folder: Path, device: str) -> list[dict[str, Any]]:
    """Search a residual pair on a device, explain what is found, and return what is said of it."""
    pair = write_pair(folder / "pair", "resnet")
    what = ("--device", device, "--find", "kernel", "--first", "2", "--max-queries", "1000")
    small = ("--shrink", "0", "--fail-on", "none", "--out", "run")
    completed("search", pair, *what, *small, "--trust")
    completed("explain", "run", "--device", device, "--trust")
    written = json.loads((folder / "run" / "explain.json").read_bytes())
    assert len(written["findings"]) >= 2
    return list(written["findings"].values())


def encoded(folder: Path, graph: Graph, finding: dict[str, Any]) -> Values:
    """A finding's image, as the compressed model takes it."""
    image = cv2.imread(str(folder / "run" / finding["file"]), cv2.IMREAD_UNCHANGED)
    assert image is not None
    tensor = graph.tensors[graph.inputs[0]]
    real = image.astype(np.float32) / np.float32(255)
    raw = np.round(real / np.float32(tensor.scales[0])) + tensor.zero_points[0]
    return np.asarray(np.clip(raw, -128, 127).astype(np.int8).reshape(tensor.shape))


def first_parted(
    graph: Graph, values: Values, device: Callable[[Sequence[Part], Values], list[list[Values]]]
) -> int:
    """The first operator behind which a device and the twin differ, by every beginning in turn."""
    parts = [extract(graph, 0, one.index) for one in graph.layers]
    ours = [list(run(part.content, [values])) for part in parts]
    return next(
        one.index
        for one, first, second in zip(graph.layers, ours, device(parts, values), strict=True)
        if any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True))
    )


def built_in(parts: Sequence[Part], values: Values) -> list[list[Values]]:
    return [list(run(part.content, [values], "builtin")) for part in parts]


@pytest.mark.slow
def test_on_built_in_kernels_the_first_layer_is_the_one_that_rounds_otherwise(
    tmp_path: Path,
) -> None:
    found = explained(tmp_path, "emulated-builtin")
    graph = Graph((tmp_path / "pair" / "compressed.tflite").read_bytes())
    for finding in found:
        assert finding["verdict"]["name"] in ("kernel", "several")
        assert finding["verdict"]["which"] in ("delegate", "builtin")
        parting = finding["device_and_twin"]
        assert (parting["method"], parting["first"]) == ("capture", True)
        values = encoded(tmp_path, graph, finding)
        assert parting["onset"]["operator_index"] == first_parted(graph, values, built_in)


_RUN_ON_THE_OLD_BOARD = """
import sys
import numpy as np
from tflite_runtime.interpreter import Interpreter
given = np.load(sys.argv[1])
made = {}
for part in (name for name in given.files if name.startswith("part")):
    interpreter = Interpreter(model_content=given[part].tobytes(), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], given["values"])
    interpreter.invoke()
    for at, details in enumerate(interpreter.get_output_details()):
        made[f"{part}/{at}"] = interpreter.get_tensor(details["index"])
np.savez(sys.argv[2], **made)
"""


@pytest.mark.slow
@pytest.mark.old_board
def test_across_runtimes_the_version_is_to_blame_and_the_first_layer_found(
    tmp_path: Path, old_board_python: Path
) -> None:
    """Of a residual network, whose sums this runtime writes over captured tensors."""
    (tmp_path / "device_profiles").mkdir()
    profile = f'transport = "emulated"\npython = "{old_board_python}"\n'
    (tmp_path / "device_profiles" / "old.toml").write_text(profile)
    found = explained(tmp_path, "old")
    graph = Graph((tmp_path / "pair" / "compressed.tflite").read_bytes())

    def old_board(parts: Sequence[Part], values: Values) -> list[list[Values]]:
        given, made = tmp_path / "given.npz", tmp_path / "made.npz"
        files = {
            f"part{at}": np.frombuffer(part.content, np.uint8) for at, part in enumerate(parts)
        }
        np.savez(given, values=values, **files)  # type: ignore[arg-type]
        command = [str(old_board_python), "-c", _RUN_ON_THE_OLD_BOARD, str(given), str(made)]
        subprocess.run(command, capture_output=True, timeout=300, check=True)
        with np.load(made) as arrays:
            return [
                [arrays[f"part{at}/{output}"] for output in range(len(part.outputs))]
                for at, part in enumerate(parts)
            ]

    for finding in found:
        assert finding["verdict"]["name"] in ("kernel", "several")
        assert finding["verdict"]["which"] == "runtime-version"
        parting = finding["device_and_twin"]
        assert parting["first"]
        values = encoded(tmp_path, graph, finding)
        assert parting["onset"]["operator_index"] == first_parted(graph, values, old_board)
