"""Where findings begin, on networks with depthwise layers and residual connections.

What `edgeflare explain` says of a search's findings is held against beginnings of the network that
are cut out one after the other and run without it, by the runtimes themselves.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from math import ceil, log2
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edgeflare.cli import main
from edgeflare.diagnose.kernel_localization import KernelLocalizer, KernelOnset
from edgeflare.models.graph_parts import Part, extract
from edgeflare.models.model_probe import Probe, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph, GraphOp
from fault_injection import Planted, broken
from networks import Kind, pair_of, write_pair
from tampering import (
    InterpreterProbe,
    example_input,
    run,
)

KINDS: tuple[Kind, ...] = ("mobilenet", "resnet")
Opens = Callable[[bytes, bool], Probe]
Change = Callable[[bytes], bytes]


def fault_in(graph: Graph, one: GraphOp) -> Change:
    """Negate the weights of a layer; cut a sum off at -1 and 1."""
    fault = "sum cut off" if one.name == "ADD" else "weights negated"
    planted = Planted(fault, graph.tensors[one.outputs[0]].name)
    return lambda part: broken(part, planted)


class Delegate:
    """A device double that hides what is between input and output, and counts what it is asked."""

    def __init__(self, content: bytes, change: Change) -> None:
        self._layers = len(Graph(content).layers)
        self._change = change
        self.runs = 0

    def __call__(self, content: bytes, capture: bool) -> Probe:
        graph = Graph(content)
        whole_network = len(graph.layers) == self._layers and len(graph.inputs) == 1
        if capture or (whole_network and len(graph.outputs) > 1):
            raise ProbeRefused("too many outputs")
        self.runs += len(graph.inputs) == 1  # those with more are operators side by side
        return InterpreterProbe(self._change(content))


def find(content: bytes, device: Opens) -> KernelOnset:
    def twin(part: bytes, capture: bool) -> Probe:
        return InterpreterProbe(part, capture=capture)

    with closing(KernelLocalizer(Graph(content), content, device, twin, 3 << 20)) as finder:
        return finder.find(example_input())[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_in_any_layer_is_found_by_capture_and_by_bisection(kind: Kind) -> None:
    """In every second layer that LeNets do not have, and in every fourth of the others."""
    content = pair_of(kind)[1]
    graph = Graph(content)
    new = [one for one in graph.layers if one.name in ("DEPTHWISE_CONV_2D", "ADD")]
    known = [one for one in graph.layers if one.name in ("CONV_2D", "FULLY_CONNECTED")]
    for one in (*new[::2], *known[::4]):
        change = fault_in(graph, one)
        device = Delegate(content, change)
        captured = find(content, partial(changed, change))
        for found, method in ((captured, "capture"), (find(content, device), "prefix")):
            assert found.onset is not None
            assert (found.method, found.first, found.onset.operator) == (method, True, one.index)
        own = {layer.layer.operator for layer in captured.layers if layer.own and layer.own.parted}
        assert (own, captured.perturbation) == ({one.index}, None)
        assert device.runs <= ceil(log2(len(graph.layers))) + 2


def changed(change: Change, part: bytes, capture: bool) -> Probe:
    return InterpreterProbe(change(part), capture=capture)


# Findings of real searches.


def edgeflare(folder: Path, *arguments: str) -> None:
    """Call the command in a folder, within this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HOME", str(folder))
        patch.setattr(sys, "argv", ["edgeflare", *arguments, "--trust"])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 0


def explained(folder: Path, device: str) -> list[dict[str, Any]]:
    """Search a residual pair on a device, explain what is found, and return what is said of it."""
    pair = write_pair(folder / "pair", "resnet")
    what = ("--device", device, "--find", "kernel", "--first", "2", "--max-queries", "1000")
    small = ("--shrink", "0", "--fail-on", "none", "--out", "run")
    edgeflare(folder, "search", str(pair), *what, *small)
    edgeflare(folder, "explain", "run", "--device", device)
    written = json.loads((folder / "run" / "explain.json").read_bytes())
    assert len(written["findings"]) >= 2
    return list(written["findings"].values())


def encoded(folder: Path, graph: Graph, finding: dict[str, Any]) -> Values:
    """A finding's image, as the compressed model takes it."""
    image = cv2.imread(str(folder / "run" / finding["image"]), cv2.IMREAD_UNCHANGED)
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
        assert finding["verdict"]["which"] in ("delegate", "built-in kernels")
        parting = finding["device_and_twin"]
        assert (parting["method"], parting["first"]) == ("capture", True)
        values = encoded(tmp_path, graph, finding)
        assert parting["onset"]["operator"] == first_parted(graph, values, built_in)


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
        assert finding["verdict"]["which"] == "runtime version"
        parting = finding["device_and_twin"]
        assert parting["first"]
        values = encoded(tmp_path, graph, finding)
        assert parting["onset"]["operator"] == first_parted(graph, values, old_board)
