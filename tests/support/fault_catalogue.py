"""A fault, where it is planted, and what has to be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.seeds import SeedChoice
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph, GraphOp
from fault_injection import Planted, broken
from runtime_fault_injection import Nodes
from tampering import InterpreterProbe

WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")

_KINDS = ("weights negated", "filters in another order", "one bias")
_SEEN_SEEDS = 50


@dataclass(frozen=True)
class Fault:
    """A fault, where it is planted, and what has to be said of it.

    Attributes:
        pair: folder of the pair.
        where: "file" or "device".
        planted: what is wrong; of a device with another runtime only its name counts.
        verdict: the right one.
        operator: the layer that it sits in; None where it sits in none.
        which: what has to be named besides, where the verdict has to name something.
        settings: further lines of the device's profile, of a fault in another runtime than TFLite's
            interpreter.

    """

    pair: Path
    where: str
    planted: Planted
    verdict: str
    operator: int | None = None
    which: str | None = None
    settings: str = ""

    def broken_file(self) -> bytes:
        """Return the compressed model with the fault.

        The half-precision one is the original, a layer of which went through float16.
        """
        return broken(base(self.pair, self.where, self.planted.fault), self.planted)


OTHER_RUNTIME = "other runtime"
"""A device that has another version of the runtime."""


def base(pair: Path, where: str, fault: str) -> bytes:
    """Return the file that a fault is planted in."""
    known = load_pair(pair)
    assert known.original is not None
    original = where == "file" and fault == "half precision"
    return (Path(known.original) if original else known.compressed).read_bytes()


def in_layer(pair: Path, where: str, one: GraphOp, planted: Planted) -> Fault:
    """A fault in a layer."""
    verdict = "compression" if where == "file" else "kernel"
    which = "thread-count" if planted.threads > 1 else None
    return Fault(pair, where, planted, verdict, one.index, which)


def named_layer(graph: Graph, one: GraphOp) -> str:
    """The name that a fault's layer goes by."""
    return graph.tensors[one.outputs[0]].name


def changes_decisions(pair: Path, planted: Planted) -> bool:
    """Whether some of the first seeds is decided otherwise with a fault in the file, without a tie.

    A search sets deviations by a tie aside.
    """
    content = base(pair, "device", planted.fault)
    before, now = (
        answers(pair, one).reshape(_SEEN_SEEDS, -1) for one in (content, broken(content, planted))
    )
    best = np.sort(now, axis=1)
    moved = before.argmax(axis=1) != now.argmax(axis=1)
    return bool((moved & (best[:, -1] > best[:, -2])).any())


@cache
def answers(pair: Path, content: bytes) -> NDArray[np.generic]:
    """What a model puts out on the first seeds."""
    known = load_pair(pair)
    graph = Graph(content)
    quantized = bool(graph.tensors[graph.inputs[0]].scales)
    assert known.original is not None
    model = open_tflite(known.compressed if quantized else Path(known.original))
    try:
        tensor = model.signature.input
    finally:
        model.close()
    takes = ModelInputs(known.interface, [tensor], "the model")
    inputs = takes.encoder().encode(takes.load(known.seeds, SeedChoice(first=_SEEN_SEEDS)).inputs)
    probe = InterpreterProbe(content)
    return np.stack([probe.run([one.reshape(tensor.shape)])[0] for one in inputs])


# Faults in other runtimes than TFLite's interpreter.


def gpu(precision: str, *, fallback: bool) -> str:
    """Return the lines of a profile that has a GPU."""
    return accelerated("gpu", precision, fallback=fallback)


def accelerated(kernels: str, precision: str, *, fallback: bool) -> str:
    """Return the lines of a profile that has an accelerator."""
    allowed = str(fallback).lower()
    return f'kernels = "{kernels}"\nprecision = "{precision}"\nfallback = {allowed}'


def drawn_in_layer(
    pair: Path,
    place: str,
    settings: str,
    which: str,
    rng: np.random.Generator,
    nodes: Nodes | None = None,
    kinds: tuple[str, ...] = _KINDS,
) -> Fault:
    """Draw a layer with weights, and what is wrong in it.

    A fault that decides none of the first seeds otherwise is drawn again.
    """
    graph = Graph(base(pair, "device", ""))
    layers = [
        one for one in graph.layers if one.name in WEIGHTED and (nodes is None or nodes(graph, one))
    ]
    while True:
        one = layers[int(rng.integers(len(layers)))]
        kind, seed = kinds[int(rng.integers(len(kinds)))], int(rng.integers(1 << 31))
        planted = Planted(kind, named_layer(graph, one), seed=seed, place=place)
        if changes_decisions(pair, planted):
            return Fault(pair, "device", planted, "kernel", one.index, which, settings)
