"""Compares the translation of a network with what the runtime computes, before it is relied on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.model_probe import HostProbe, ProbeFailed
from edgeflare.models.tflite_graph import GraphTensor
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork
from edgeflare_protos.kernel_sets import Kernels

UNITS = 1.0
"""Units of a quantized tensor by which translation and runtime may differ."""

SHARE = 1e-4
"""Allowed difference of translation and runtime in a float tensor, as a share of its largest value,
or of 1 where that is less."""

HYBRID_SHARE = 1.0 / 255.0
"""The share in a network with hybrid operators. They quantize their inputs to 255 steps each time,
where a difference in the last digit of float32 may make one of a whole step."""

CHECKED_SEEDS = 8
"""Seeds on which the two are compared: a wrong translation is wrong on every input."""


def require_equal(
    network: DifferentiableNetwork,
    content: bytes,
    kernels: Kernels,
    rows: Sequence[NDArray[np.generic]],
) -> None:
    """Refuse a translation whose output or scores are not those of the runtime.

    Args:
        network: the translation.
        content: the file of the model.
        kernels: those that run it.
        rows: inputs as the model takes them.

    Raises:
        UserError: they differ by more than a unit, or by more than 1e-4 where they are float; it
            names the layer where that begins.

    """
    graph = network.graph
    with HostProbe(content, kernels, capture=True) as probe:
        for row in rows:
            try:
                given = row.reshape(graph.tensors[graph.inputs[0]].shape)
                runtime = dict(zip(probe.made, probe.run([given]), strict=True))
            except ProbeFailed as failed:
                raise UserError(f"{graph.source}: the runtime fails on a seed: {failed}") from None
            _compare(network, kernels, network.tensors(row), runtime)


def excess(
    tensor: GraphTensor,
    translated: NDArray[np.generic],
    runtime: NDArray[np.generic],
    share: float = SHARE,
) -> float:
    """Return by what multiple of what is allowed a translated tensor differs at most.

    Where either has infinity or NaN it is infinite.

    Args:
        tensor: says whether it is quantized.
        translated: raw values of the tensor as they are translated.
        runtime: the same as the runtime computes them.
        share: what is allowed where it is not quantized, of the largest value, or of 1.

    """
    wanted = runtime.astype(np.float64)
    error = float(np.abs(translated.astype(np.float64).reshape(wanted.shape) - wanted).max())
    if not np.isfinite(error):
        return np.inf
    if tensor.scales:
        return error / UNITS
    return error / (share * max(1.0, float(np.abs(wanted).max())))


def _compare(
    network: DifferentiableNetwork,
    kernels: Kernels,
    translated: Mapping[int, NDArray[np.generic]],
    runtime: Mapping[int, NDArray[np.generic]],
) -> None:
    graph = network.graph
    share = HYBRID_SHARE if network.hybrid else SHARE
    by_layer = {
        layer.index: excess(graph.tensors[tensor], translated[tensor], runtime[tensor], share)
        for layer in network.layers
        for tensor in layer.outputs
        if tensor in runtime
    }
    ends = {graph.made_by[tensor] for tensor in (graph.outputs[0], network.scores)}
    if not any(by_layer.get(index, 0.0) > 1.0 for index in ends):
        return
    first = next(index for index, times in by_layer.items() if times > 1.0)
    raise UserError(
        f"{graph.source}: its translation, which is differentiated, does not compute what the"
        f" {kernels} kernels do, beginning with operator {first}, {graph.operators[first].name}:"
        f" it is off by {by_layer[first]:.3g} times what is taken for equal"
    )
