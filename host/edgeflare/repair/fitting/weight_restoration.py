"""Weights and their scales, restored from the original where they are not what it was rounded to.

A channel is left as it is unless its error is far above that of rounding to the nearest step. So
weights that another method rounded on purpose stay, and a scale that is wrong, weights that were
clipped or overwritten do not. Biases of layers that are restored are derived anew, since their
steps follow from the scales of weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import GraphTensor
from edgeflare.repair.fitting.biases import has_integer_bias, real_bias, write_bias
from edgeflare.repair.fitting.gptq import MOST_STEPS
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork

Real = NDArray[np.float64]

_FAR_ABOVE = 9.0
"""How many times the squared error of rounding to the nearest step a channel may have. Rounding at
random up or down has 4 times it; a scale that is off by 2 % about 12 times."""


def restore_weights(network: QuantizedNetwork, *, everywhere: bool = False) -> bytes:
    """Return the file with sound weights of int8; it is the same file where all of them are.

    With `everywhere` all are rounded to the nearest steps of the scale that the largest one gives.
    """
    edit = InPlaceEdit(network.content, network.graph.source)
    tolerated = -1.0 if everywhere else _FAR_ABOVE
    restored = [
        layer for layer in network.layers if _restore_layer(edit, network, layer, tolerated)
    ]
    biases = [
        (layer, real_bias(network.graph, layer))
        for layer in restored
        if has_integer_bias(network.graph, layer)
    ]
    network = network.with_content(edit.content())
    edit = InPlaceEdit(network.content, network.graph.source)
    for layer, real in biases:
        write_bias(edit, network.graph, layer, real)
    return edit.content()


def _restore_layer(
    edit: InPlaceEdit, network: QuantizedNetwork, layer: MatchedLayer, tolerated: float
) -> bool:
    """Restore the weights of a layer, and return whether they change."""
    if layer.weights is None or layer.float_weights is None:
        return False
    tensor = network.graph.tensors[layer.weights]
    if not tensor.holds_int8_steps:
        return False
    raw = _by_channel(tensor, network.graph.values(layer.weights)).astype(np.float64)
    wanted = _by_channel(tensor, layer.float_weights).astype(np.float64)
    scales = np.asarray(tensor.scales, np.float64)
    changed_raw, changed_scales = _restored(raw, scales, wanted, tolerated)
    if np.array_equal(changed_raw, raw) and np.array_equal(changed_scales, scales):
        return False
    shape = np.moveaxis(layer.float_weights, tensor.axis, 0).shape
    whole = changed_raw.astype(np.int8)
    if len(scales) > 1:
        whole = np.moveaxis(whole.reshape(shape), 0, tensor.axis)
    edit.set_values(layer.weights, np.ascontiguousarray(whole.reshape(tensor.shape)))
    edit.set_quantization(layer.weights, list(changed_scales), tensor.zero_points)
    return True


def _by_channel(tensor: GraphTensor, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return values as (channels, values of each); one channel where there is one scale."""
    if len(tensor.scales) == 1:
        return values.reshape(1, -1)
    return np.moveaxis(values, tensor.axis, 0).reshape(len(tensor.scales), -1)


def _restored(raw: Real, scales: Real, wanted: Real, tolerated: float) -> tuple[Real, Real]:
    """Return raw weights and scales, those of bad channels replaced.

    A bad channel gets the scale that fits its raw weights best, if that is all that it lacks, and
    else is rounded anew.
    """
    largest = np.abs(wanted).max(axis=1)
    nearest_scales = _float32(np.where(largest > 0, largest / MOST_STEPS, scales))
    nearest = np.clip(np.round(wanted / nearest_scales[:, None]), -MOST_STEPS, MOST_STEPS)
    allowed = tolerated * np.maximum(
        _squared_error(nearest, nearest_scales, wanted), nearest_scales**2 / 12
    )
    energy = np.maximum((raw**2).sum(axis=1), 1.0)
    fitting_scales = (raw * wanted).sum(axis=1) / energy
    fitting_scales = _float32(np.where(fitting_scales > 0, fitting_scales, scales))
    bad = _squared_error(raw, scales, wanted) > allowed
    refitted = bad & (_squared_error(raw, fitting_scales, wanted) <= allowed)
    anew = bad & ~refitted
    return (
        np.where(anew[:, None], nearest, raw),
        np.where(anew, nearest_scales, np.where(refitted, fitting_scales, scales)),
    )


def _squared_error(raw: Real, scales: Real, wanted: Real) -> Real:
    return np.asarray(((raw * scales[:, None] - wanted) ** 2).mean(axis=1))


def _float32(values: Real) -> Real:
    return values.astype(np.float32).astype(np.float64)
