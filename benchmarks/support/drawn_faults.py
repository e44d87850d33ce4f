"""Faults to plant in files and devices: those that the diagnosis was made with, and drawn ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from edgeflare.models.tflite_graph import Graph, GraphOp
from fault_catalogue import OTHER_RUNTIME, WEIGHTED, Fault, answers, base, in_layer, named_layer
from fault_injection import BIASES, DEVICES, WEIGHTS, Planted, broken

_TUNED = (
    "weights negated",
    "one weight",
    "bias shifted",
    "rounded down to even",
    "padding shifted by a row",
    "filters in another order",
    "zero point off by one",
)
_SPATIAL = ("padding shifted by a row", "padding shifted by a column")


# Those that the diagnosis was made with.


def tuned(given: Sequence[Path], mobilenet: Path) -> Iterator[Fault]:
    """Yield the faults that are known while the diagnosis is worked at."""
    for number, pair in enumerate([*given, mobilenet]):
        graph = Graph(base(pair, "device", ""))
        layers = [one for one in graph.layers if one.name in WEIGHTED]
        convolutions = [one for one in layers if one.name != "FULLY_CONNECTED"]
        for at in range(4):
            for where, shift in (("file", 0), ("device", 3)):
                name = _TUNED[(4 * number + at + shift) % len(_TUNED)]
                among = convolutions if "row" in name else layers
                start = at * len(among) // 4 + shift + number
                around = (among[(start + step) % len(among)] for step in range(len(among)))
                one = next(one for one in around if "row" not in name or _rows(graph, one) > 1)
                yield in_layer(pair, where, one, Planted(name, named_layer(graph, one)))
        one = layers[(number + 1) % len(layers)]
        for where in ("file", "device"):
            yield in_layer(pair, where, one, Planted("scale off", named_layer(graph, one)))
    yield from _of_the_device(given[0], given[-1])
    for pair in given[:2]:
        yield Fault(pair, "device", Planted("preprocessed for -1 to 1"), "input-suspect")
    yield from _of_mobile_networks(given[0], mobilenet)


def _rows(graph: Graph, one: GraphOp) -> int:
    """How many rows a convolution's filters have."""
    return graph.tensors[one.inputs[1]].shape[1]


def _of_the_device(first: Path, last: Path) -> Iterator[Fault]:
    graph = Graph(base(first, "device", ""))
    one = next(one for one in graph.layers if one.name in WEIGHTED)
    threads = Planted("weights negated", named_layer(graph, one), threads=2)
    yield in_layer(first, "device", one, threads)
    yield Fault(first, "device", Planted("constant output"), "kernel")
    yield Fault(first, "device", Planted("flaky"), "unstable")
    yield Fault(last, "device", Planted("stale output"), "unstable")
    yield Fault(first, "device", Planted("rows from below"), "input-suspect")
    yield Fault(last, "device", Planted("channels swapped"), "input-suspect")
    yield Fault(last, "device", Planted(OTHER_RUNTIME), "kernel", which="runtime-version")


def _of_mobile_networks(lenet: Path, mobilenet: Path) -> Iterator[Fault]:
    """Yield those that came with half precision and with residual and depthwise layers."""
    graph = Graph(base(mobilenet, "device", ""))
    depthwise = [one for one in graph.layers if one.name == "DEPTHWISE_CONV_2D"]
    sums = [one for one in graph.layers if one.name == "ADD"]
    for one in (depthwise[0], depthwise[3]):
        half = Planted("half precision", named_layer(graph, one))
        yield in_layer(mobilenet, "device", one, half)
    for where, one in (("file", depthwise[2]), ("device", depthwise[4])):
        rounds = Planted("rounds down", named_layer(graph, one))
        yield in_layer(mobilenet, where, one, rounds)
    cut = Planted("sum cut off", named_layer(graph, sums[1]))
    yield in_layer(mobilenet, "device", sums[1], cut)
    for pair in (lenet, mobilenet):
        original = Graph(base(pair, "file", "half precision"))
        one = [one for one in original.layers if one.name in WEIGHTED][1]
        half = Planted("half precision", named_layer(original, one))
        yield in_layer(pair, "file", one, half)
    yield Fault(mobilenet, "device", Planted(OTHER_RUNTIME), "kernel", which="runtime-version")


# Those that it was not.


def held_out(pairs: Sequence[Path], seed: int, count: int, *, old_board: bool) -> Iterator[Fault]:
    """Draw faults: half of them in the file, a third of the device's in the device as a whole.

    A fault that changes what the model puts out on none of the first seeds is drawn again.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        pair = pairs[int(rng.integers(len(pairs)))]
        if number % 6 == 5:
            yield _drawn_of_the_device(pair, rng, old_board=old_board)
        else:
            yield _drawn_in_a_layer(pair, ("file", "device")[number % 2], rng)


def _drawn_of_the_device(pair: Path, rng: np.random.Generator, *, old_board: bool) -> Fault:
    graph = Graph(base(pair, "device", ""))
    gray = graph.tensors[graph.inputs[0]].shape[-1] == 1
    kinds = [kind for kind in DEVICES[:-1] if not (gray and kind == "channels swapped")]
    kind = str(rng.choice([*kinds, *([OTHER_RUNTIME] if old_board else [])]))
    amount, at = float(rng.uniform(0.4, 1.6)), int(rng.integers(10))
    if kind == OTHER_RUNTIME:
        return Fault(pair, "device", Planted(kind), "kernel", which="runtime-version")
    verdicts = {"constant output": "kernel", "flaky": "unstable", "stale output": "unstable"}
    planted = Planted(kind, amount=amount, seed=at)
    return Fault(pair, "device", planted, verdicts.get(kind, "input-suspect"))


def _drawn_in_a_layer(pair: Path, where: str, rng: np.random.Generator) -> Fault:
    while True:
        graph = Graph(base(pair, "device", ""))
        one = graph.layers[int(rng.integers(len(graph.layers)))]
        kinds = _kinds(graph, one)
        if not kinds:
            continue
        kind = str(rng.choice(kinds))
        if where == "file" and kind == "half precision":
            graph = Graph(base(pair, where, kind))
            one = [one for one in graph.layers if one.name in WEIGHTED][int(rng.integers(4))]
        planted = Planted(
            kind,
            named_layer(graph, one),
            _amount(kind, rng),
            int(rng.integers(1 << 30)),
            threads=2 if where == "device" and rng.random() < 0.1 else 1,
        )
        if _changes_outputs(pair, where, planted):
            return in_layer(pair, where, one, planted)


def _kinds(graph: Graph, one: GraphOp) -> list[str]:
    if one.name == "ADD":
        return ["sum cut off"]
    if one.name == "MAX_POOL_2D":
        return ["other pooling"]
    if one.name not in WEIGHTED:
        return []
    others = ["scale off", "rounds down", "zero point of the input misread", "half precision"]
    weights = graph.tensors[one.inputs[1]]
    spatial = len(weights.shape) == 4 and weights.shape[1] > 1
    return [kind for kind in (*WEIGHTS, *BIASES, *others) if spatial or kind not in _SPATIAL]


def _amount(kind: str, rng: np.random.Generator) -> float:
    sign = float(rng.choice([-1.0, 1.0]))
    if kind in ("zero point off by one", "zero point of the input misread", *_SPATIAL):
        return sign
    if kind == "filters in another order":
        return float(rng.integers(1, 6))
    if kind == "rounded down to even":
        return float(rng.integers(1, 5))
    if kind == "some weights":
        return float(rng.uniform(0.01, 0.2))
    return sign * float(rng.uniform(0.3, 2.0))


def _changes_outputs(pair: Path, where: str, planted: Planted) -> bool:
    content = base(pair, where, planted.fault)
    return not np.array_equal(answers(pair, content), answers(pair, broken(content, planted)))
