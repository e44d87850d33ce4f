"""Quantize one layer coarsely, and see whether it is named with the kind; and healthy files.

    python benchmarks/coarse_layers.py PAIRS --out runs/coarse.json

PAIRS is the folder of the development pairs, of which a residual network and MediaPipe's face
detector with float16 weights are taken; to these come the example's LeNet and a regression of
tests/cases.

Three layers of each are drawn by the hash of the commit, in kinds that take turns: the range of an
activation four times as wide, or a fourth; one scale for the weights of a layer that had one for
each channel; or the scale of another activation that is four times as wide or more. A draw is drawn
anew, and counted, where undoing it takes away less than half of the error of the margin; where that
is so in 8 layers, or in all, with the next kind.

Three healthy files of each are made of the same originals, in ways that are drawn: calibrated on
other inputs, with a scale for each channel, with weights alone in float16 or in int8. None of them
has a coarse layer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))


from calibration import recalibrated
from dynamic_range import quantize_weights
from edgeflare.core.task import ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, pack_rows
from edgeflare.diagnose.arm_probe import State
from edgeflare.diagnose.compression_error import CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.diagnose.margin_error import MarginError, margin_error
from edgeflare.diagnose.original_layers import OriginalLayers
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.diagnose.quantized_places import counterparts
from edgeflare.diagnose.tensor_ties import tied_tensors
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.model_probe import Values
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.quantized_range import range_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.quantized_network import MatchedLayer
from edgeflare.tasks.detection.detection_task import Detection
from edgeflare.tasks.regression import Regression
from prepared_weights import with_prepared_weights
from quantization_faults import Network, QuantizationFault, scaled_range, with_range
from requantizing import Converter, requantized
from tampering import InterpreterProbe, class_reader, edited, signature_of
from tflite_weights import write_constant

REPOSITORY = Path(__file__).resolve().parents[1]

Real = NDArray[np.float32]

SEEDS, FINDINGS, DRAWS, MOST_DRAWS = 16, 3, 3, 8


@dataclass(frozen=True)
class TriedPair:
    """An original, a healthy int8 file of it, the original's inputs, and what reads its outputs.

    Attributes:
        name: what it is called here.
        original: a float file.
        float32: the original with weights in float32, of which files are made.
        compressed: a healthy int8 file.
        inputs: of the original.
        reader: reads its outputs.

    """

    name: str
    original: bytes
    float32: bytes
    compressed: bytes
    inputs: Real
    reader: ModelReader


def pairs_of(folder: Path) -> Iterator[TriedPair]:
    """Yield the four pairs."""
    example = REPOSITORY / "examples" / "fashion_lenet4"
    residual = folder / "resnet20_cifar10_int8"
    for name, path in (("lenet4", example), ("resnet20", residual)):
        original = (path / "original.tflite").read_bytes()
        meta = json.loads((path / "meta.json").read_text())
        how = meta.get("preprocess", {})
        images = np.load(path / "seeds.npz")["images"].astype(np.float32)
        scaled = images / np.float32(how.get("scale", 255))
        shape = Graph(original).tensors[Graph(original).inputs[0]].shape[1:]
        inputs = (scaled - np.float32(how.get("mean", 0))) / np.float32(how.get("std", 1))
        compressed = (path / "compressed.tflite").read_bytes()
        yield TriedPair(
            name,
            original,
            original,
            compressed,
            inputs.astype("f4").reshape(-1, *shape),
            class_reader(original),
        )
    faces = folder / "blazeface_short_int8"
    original = (faces / "variants" / "float16_as_published.tflite").read_bytes()
    images = np.load(faces / "seeds.npz")["images"].astype(np.float32) / np.float32(127.5) - 1
    reader = reader_of(Detection(cells=((16, 2), (8, 6)), size=128.0), original, images)
    compressed = (faces / "compressed.tflite").read_bytes()
    float32 = (faces / "original.tflite").read_bytes()
    yield TriedPair("blazeface", original, float32, compressed, images, reader)
    values = REPOSITORY / "tests" / "cases" / "regression_saturates"
    original = (values / "original.tflite").read_bytes()
    images = np.load(values / "seeds.npz")["images"].astype(np.float32) / np.float32(255)
    reader = reader_of(Regression(tolerance=4.0), original, images)
    edit = InPlaceEdit((values / "compressed.tflite").read_bytes())
    (last,) = Graph(edit.content()).outputs
    edit.set_quantization(last, [100 / 255], [-128])  # of values of 0 to 95
    yield TriedPair("regression", original, original, edit.content(), images, reader)


def reader_of(task: Task, original: bytes, inputs: Real) -> ModelReader:
    """Return what reads a task's answers from the original's outputs."""
    signature, operators = signature_of(original), [one.name for one in Graph(original).operators]

    def sample(count: int) -> RawBatch:
        probe = InterpreterProbe(original)
        rows = [probe.run([inputs[at : at + 1]]) for at in range(min(count, len(inputs)))]
        return RawBatch(
            pack_rows(signature.outputs, [np.stack(one) for one in zip(*rows, strict=True)])
        )

    described = ModelOutputs(
        "the original", signature.outputs, frozenset(), 0, tuple(operators), sample
    )
    return ModelReader(OutputStage(PairInterface(), task.decoder(described)), signature)


# What is drawn.


def planted(pair: TriedPair, kind: str, rng: np.random.Generator) -> Iterator[QuantizationFault]:
    """Yield files with a layer that is quantized coarsely in one way, in an order that is drawn."""
    network = Network(pair.compressed, pair.original)
    if kind == "one-scale-for-unlike-channels":
        layers = network.layers
        for at in rng.permutation(len(layers)):
            if (fault := _one_scale(network, layers[int(at)])) is not None:
                yield fault
        return
    groups = tied_tensors(network.graph)
    for at in rng.permutation(len(groups)):
        group = groups[int(at)]
        if kind != "one-scale-for-unlike-things":
            amount = 4.0 if kind == "range-too-wide" else 0.25
            yield with_range(network, group, scaled_range(network, group, amount), kind, amount)
            continue
        own = network.graph.tensors[group.sources[0]]
        others = [network.graph.tensors[one.sources[0]] for one in groups if one is not group]
        wider = [one for one in others if one.scales[0] >= 4 * own.scales[0]]
        if wider:
            other = wider[int(rng.integers(len(wider)))]
            wanted = range_of(other)
            assert wanted is not None  # noqa: S101 - tied tensors have one scale
            yield with_range(network, group, wanted, kind, other.scales[0] / own.scales[0])


KINDS = (
    "range-too-wide",
    "saturated",
    "one-scale-for-unlike-channels",
    "one-scale-for-unlike-things",
)


def _one_scale(network: Network, layer: MatchedLayer) -> QuantizationFault | None:
    graph = network.graph
    weights = graph.tensors[layer.weights] if layer.weights is not None else None
    if layer.weights is None or layer.bias is None or weights is None or len(weights.scales) < 2:
        return None
    real, bias = layer.float_weights, layer.float_bias
    if real is None or bias is None:
        return None
    bias_tensor, step = layer.bias, float(np.abs(real).max()) / 127
    given = graph.tensors[layer.inputs[0]].scales[0]

    def change(model: Any) -> None:
        tensors = model.subgraphs[0].tensors
        for tensor, scale, values, dtype in (
            (weights.index, step, real, np.int8),
            (bias_tensor, step * given, bias, np.int32),
        ):
            write_constant(model, tensor, np.round(values / scale).astype(dtype))
            known = tensors[tensor].quantization
            known.scale, known.zeroPoint = np.array([scale], "f4"), np.zeros(1, np.int64)

    content = edited(network.content, change)
    ratio = step / float(np.median(weights.scales))
    return QuantizationFault("one-scale-for-unlike-channels", layer.operator, ratio, content)


def healthy(pair: TriedPair, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Yield three healthy files, made in ways that are drawn."""
    graph = Graph(pair.compressed)
    ways: dict[str, Callable[[], bytes]] = {
        "calibrated on others": lambda: recalibrated(
            pair.compressed,
            np.concatenate([_encoded(graph, one[None]) for one in pair.inputs[20:220:2]]),
        ),
        "a scale for each channel": lambda: requantized(pair.float32, pair.compressed, Converter()),
        "weights in float16": lambda: with_prepared_weights(pair.float32, ["DEQUANTIZE"]),
        "weights in int8": lambda: quantize_weights(pair.float32),
    }
    for name in rng.permutation(list(ways))[:DRAWS]:
        yield str(name), ways[str(name)]()


# What is said of it.


class Explainer:
    """Explains files of a pair in this process, and says how large their errors are."""

    def __init__(self, pair: TriedPair) -> None:
        self._pair = pair
        self._graph = Graph(pair.original)
        self._layers = OriginalLayers(self._graph, pair.original, _opens)
        self._stride = max(1, len(pair.inputs) // SEEDS)

    def error(self, content: bytes) -> float:
        """Return the mean over seeds of the absolute error of the margin."""
        graph, sizes = Graph(content), list[float]()
        matched = {op: other for op, (other, _) in match_layers(graph, self._graph).items()}
        standing_for = counterparts(graph, self._graph, matched)
        for state, given in self._seeds(graph, content):
            real = {
                tensor: self._graph.tensors[tensor].real(values)
                for tensor, values in self._layers.capture(given).items()
            }
            got = {
                other: graph.tensors[tensor].real(state[tensor])
                for tensor, (other, made) in standing_for.items()
                if made >= 0
            }
            read = partial(self._pair.reader.answers, given)
            found: MarginError[int] | None = margin_error(self._layers, read, got, real, {})
            sizes += [] if found is None else [found.size]
        return float(np.abs(sizes).mean()) if sizes else 0.0

    def found(self, content: bytes) -> list[CompressionError]:
        """Explain a file on a few inputs that are no seeds."""
        graph = Graph(content)
        localizer = CompressionLocalizer(
            graph,
            self._graph,
            self._pair.original,
            _opens,
            self._pair.reader,
            lambda: list(self._seeds(graph, content)),
        )
        probe = InterpreterProbe(content, capture=True)
        with closing(localizer):
            return [
                localizer.find(*self._seen(graph, probe, 1 + at * self._stride))
                for at in range(FINDINGS)
            ]

    def _seeds(self, graph: Graph, content: bytes) -> Iterator[tuple[State, Values]]:
        probe = InterpreterProbe(content, capture=True)
        for at in range(0, self._stride * SEEDS, self._stride):
            yield self._seen(graph, probe, at)

    def _seen(self, graph: Graph, probe: InterpreterProbe, at: int) -> tuple[State, Values]:
        given = self._pair.inputs[at : at + 1]
        encoded = _encoded(graph, given)
        made = dict(zip(probe.made, probe.run([encoded]), strict=True))
        return {graph.inputs[0]: encoded, **made}, given


def _opens(model: bytes, capture: bool) -> InterpreterProbe:
    return InterpreterProbe(model, capture=capture)


def _encoded(graph: Graph, real: Real) -> Values:
    given = graph.tensors[graph.inputs[0]]
    return given.raw(real.astype(np.float64)) if given.scales else real


def _right(fault: QuantizationFault, pair: TriedPair, found: CompressionError) -> bool:
    graph = Graph(pair.compressed)
    operators = {fault.operator}
    for group in tied_tensors(graph):
        made = {graph.made_by[tensor] for tensor in group.sources}
        operators |= made if fault.operator in made else set()
    named = [(one.operator_index, one.kind) for one in found.coarse]
    return any(operator in operators and kind == fault.kind for operator, kind in named)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path, help="the folder of the development pairs")
    parser.add_argument("--seed", type=int, help="draw by another number than the commit's hash")
    parser.add_argument("--only", default="", help="pairs whose name has this in it")
    parser.add_argument(
        "--out", type=Path, help="a JSON file for the results; pairs that it has are not run again"
    )
    options = parser.parse_args()
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    seed = int(head[:8], 16) if options.seed is None else options.seed
    known: dict[str, Any] = {"seed": seed, "anew": {}, "rows": []}
    if options.out and options.out.exists():
        known = json.loads(options.out.read_text())
        if options.seed not in (None, known["seed"]):
            parser.error(f"{options.out} has draws by {known['seed']}: name another file")
    for number, pair in enumerate(pairs_of(options.pairs)):
        if options.only not in pair.name or pair.name in known["anew"]:
            continue
        rng = np.random.default_rng([known["seed"], number])
        drawn, anew = _drawn(pair, number, rng)
        known["rows"] += [*drawn, *_healthy(pair, rng)]
        known["anew"][pair.name] = anew
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(known, indent=1))
    for healthy_ones in (False, True):
        some = [row for row in known["rows"] if ("healthy" in row) == healthy_ones]
        what = "healthy files without a coarse layer" if healthy_ones else "coarse layers named"
        print(f"{what}: {sum(bool(row['right']) for row in some)} of {len(some)}")
    print(f"drawn by {known['seed']}; drawn anew: {known['anew']}")


def _drawn(
    pair: TriedPair, number: int, rng: np.random.Generator
) -> tuple[list[dict[str, Any]], int]:
    """Return what is named of each drawn layer, and how many draws did too little harm."""
    rows: list[dict[str, Any]] = []
    tried, anew = Explainer(pair), 0
    whole = tried.error(pair.compressed)
    for draw in range(DRAWS):
        kinds = [KINDS[(number + draw + more) % len(KINDS)] for more in range(len(KINDS))]
        fault, draws = _harmful(pair, lambda one: whole <= tried.error(one) / 2, kinds, rng)
        anew += draws
        if fault is None:
            print(f"{pair.name}: no draw takes away half of the error", flush=True)
            continue
        found = tried.found(fault.content)
        right = sum(_right(fault, pair, one) for one in found) * 2 > len(found)
        named = [(one.operator_index, one.part, one.kind) for one in found[0].coarse]
        rows.append({"pair": pair.name, "operator": fault.operator, "kind": fault.kind,
                     "amount": fault.amount, "named": named, "right": right})  # fmt: skip
        print(f"{pair.name}: {fault.kind} {fault.operator} ({draws} anew): {named}", flush=True)
    return rows, anew


def _healthy(pair: TriedPair, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return which layers of healthy files are called coarse."""
    rows: list[dict[str, Any]] = []
    tried = Explainer(pair)
    for name, content in healthy(pair, rng):
        found = tried.found(content)
        coarse = [str(layer) for one in found for layer in one.coarse]
        rows.append({"pair": pair.name, "healthy": name, "named": coarse, "right": not coarse})
        grades = [one.grade for one in found]
        print(f"{pair.name}: healthy, {name}: {coarse or grades}", flush=True)
    return rows


def _harmful(
    pair: TriedPair,
    harms: Callable[[bytes], bool],
    kinds: Sequence[str],
    rng: np.random.Generator,
) -> tuple[QuantizationFault | None, int]:
    """Draw until undoing takes away half of the error; with how many draws did not.

    Where a kind does so in none of a few layers, the next one is drawn.
    """
    anew = 0
    for kind in kinds:
        for fault in islice(planted(pair, kind, rng), MOST_DRAWS):
            if harms(fault.content):
                return fault, anew
            anew += 1
    return None, anew


if __name__ == "__main__":
    main()
