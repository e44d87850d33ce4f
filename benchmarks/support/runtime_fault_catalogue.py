"""Faults by runtime, by precision and by fallback, and what `explain` has to name for each.

What has to be named was written down here before any of them was run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from edgeflare.models.tflite_graph import Graph, GraphOp
from fault_catalogue import OTHER_RUNTIME, Fault, accelerated, base, drawn_in_layer, gpu
from fault_injection import Planted
from networks import write_float_pair, write_pair
from runtime_fault_injection import falls_back
from tampering import weighted

STEEP: Final = 1 << 14
"""A layer whose values reach from 0 to about 6 in front of this factor then leaves float16."""

BLAMED_WRONGLY: Final = ("accelerator-precision", "cpu-fallback")
"""What a verdict on an accelerator without a fault must not name."""


@dataclass(frozen=True)
class AcceleratedPairs:
    """Folders of small pairs that an accelerator takes, whole or in part.

    Attributes:
        mobile: int8, which a GPU takes whole, and all runtimes run.
        residual: int8, with strided 1×1 convolutions, which LiteRT's GPU accelerator computes
            wrongly.
        normalized: int8, of which a GPU takes the part in front.
        float_mobile: float32, likewise whole.
        float_normalized: float32, likewise in part.
        steep: float32, with a layer whose values leave the range of float16.

    """

    mobile: Path
    residual: Path
    normalized: Path
    float_mobile: Path
    float_normalized: Path
    steep: Path


def write_pairs(folder: Path, seed: int = 0) -> AcceleratedPairs:
    """Write the pairs, with weights drawn from a seed."""
    return AcceleratedPairs(
        write_pair(folder / "mobile", "mobilenet", seed),
        write_pair(folder / "residual", "resnet", seed),
        write_pair(folder / "normalized", "normalized", seed),
        write_float_pair(folder / "float_mobile", "mobilenet", seed),
        write_float_pair(folder / "float_normalized", "normalized", seed),
        write_float_pair(folder / "steep", "resnet", seed, steep=STEEP),
    )


def runtime_faults(pairs: AcceleratedPairs, rng: np.random.Generator) -> Iterator[Fault]:
    """Yield twelve faults: five by runtime, three by precision, four by fallback."""
    yield from _by_runtime(pairs, rng)
    yield from _by_precision(pairs)
    yield from _by_fallback(pairs, rng)


def healthy_devices(pairs: AcceleratedPairs) -> Iterator[Fault]:
    """Yield accelerators without a fault; the verdict on their findings may be any."""
    for precision in ("fp16", "fp32"):
        for pair, fallback in (
            (pairs.mobile, False),
            (pairs.float_mobile, True),
            (pairs.normalized, True),
            (pairs.float_normalized, True),
        ):
            yield Fault(pair, "device", Planted(""), "", settings=gpu(precision, fallback=fallback))


def _by_runtime(pairs: AcceleratedPairs, rng: np.random.Generator) -> Iterator[Fault]:
    whole, which = gpu("fp32", fallback=False), "gpu"
    yield drawn_in_layer(pairs.mobile, "gpu", whole, which, rng, kinds=("one bias",))
    # Nothing is planted here: ai-edge-litert 2.3.0 does it by itself.
    shortcut = _first_strided_point(pairs.residual)
    halves = gpu("fp16", fallback=False)
    yield Fault(pairs.residual, "device", Planted(""), "kernel", shortcut, which, halves)
    micro, which = 'kernels = "micro"', "micro"
    yield drawn_in_layer(pairs.mobile, "micro", micro, which, rng)
    cpu, which = 'kernels = "compiled-cpu"', "compiled-cpu"
    yield drawn_in_layer(pairs.mobile, "compiled cpu", cpu, which, rng)
    yield Fault(pairs.mobile, "device", Planted(OTHER_RUNTIME), "kernel", which="runtime-version")


def _by_precision(pairs: AcceleratedPairs) -> Iterator[Fault]:
    steep = weighted(base(pairs.steep, "device", ""))[1]
    for pair, name, fallback, layer in (
        (pairs.float_mobile, "float16 weights", False, None),
        (pairs.float_normalized, "float16 activations", True, None),
        (pairs.steep, "float16 overflow", False, steep),
    ):
        planted = Planted(name, place="gpu in float16")
        settings = gpu("fp16", fallback=fallback)
        yield Fault(pair, "device", planted, "kernel", layer, "accelerator-precision", settings)


def _by_fallback(pairs: AcceleratedPairs, rng: np.random.Generator) -> Iterator[Fault]:
    part, which = gpu("fp16", fallback=True), "cpu-fallback"
    yield drawn_in_layer(pairs.normalized, "compiled cpu", part, which, rng, falls_back)
    on_gpu = "gpu"
    yield drawn_in_layer(pairs.normalized, "gpu", part, on_gpu, rng, _accelerated)
    # There is no NPU, so that the CPU runs all nodes.
    npu = accelerated("npu", "fp16", fallback=True)
    yield drawn_in_layer(pairs.float_mobile, "compiled cpu", npu, which, rng)
    yield drawn_in_layer(pairs.mobile, "silent fallback", part, which, rng)


def _accelerated(graph: Graph, one: GraphOp) -> bool:
    return not falls_back(graph, one)


def _first_strided_point(pair: Path) -> int:
    """Return the first 1×1 convolution with a stride, which halves its input."""
    graph = Graph(base(pair, "device", ""))
    return next(
        one.index
        for one in graph.layers
        if one.name == "CONV_2D"
        and graph.tensors[one.inputs[1]].shape[1:3] == (1, 1)
        and graph.tensors[one.inputs[0]].shape[1] > graph.tensors[one.outputs[0]].shape[1]
    )
