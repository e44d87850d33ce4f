"""Weights rounded by GPTQ with the inputs to fit with, layer by layer, and biases after them.

The layers of a quantized network are rounded in execution order. Each has the inputs that it has in
the network as repaired so far, and its target is what the original's layer puts out: so a layer
also moves out the errors of those before it (`InputMoments.compensating`) before its weights are
rounded (`rounded_by_gptq`). Biases are changed by the mean that is left of the difference.

Sums over the inputs of a layer, from which its weights and biases are fitted. X are the inputs as
the layer has them, a row for each position; X_f are those that the original's layer has in their
place. The squared error of the layer's output, ‖X_f W_fᵀ − X Wᵀ‖², depends on these sums alone. So
the memory that fitting needs does not grow with the number of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.linear_algebra import one_thread
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor
from edgeflare.repair.fitting.biases import has_integer_bias, real_bias, write_bias
from edgeflare.repair.fitting.gptq import MOST_STEPS, Real, damped, rounded_by_gptq
from edgeflare.repair.fitting.im2col import (
    UNFOLDED,
    grouped_weights,
    unfolded_inputs,
    ungrouped_weights,
)
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import StepwiseExecution, captured
from edgeflare.repair.fitting.weight_restoration import restore_weights

_RIDGE = 0.01
"""How strongly weights are held to the original's, as a share of the Hessian's mean diagonal."""

_MOST_BYTES = 2**24
"""Bytes of unfolded inputs at once: with the original's, errors and copies, 64 MiB."""

MOST_INPUTS = 1600
"""Inputs that layers are rounded with at most. Of 400 a dense layer learns what they have by
chance: ResNet-8's error of the lead that comes from its weights is .075 then, and .059 so."""

_POSITIONS = 2**19
"""Positions of a layer's output, over all inputs, beyond which it is rounded with fewer inputs."""

_MOST_POSITIONS = 2**17
"""Positions, over the inputs that a layer is rounded with, beyond which some are left out:
neighbours have nearly the same inputs."""

_CAPTURED_AT_ONCE = 32
"""Inputs of a float network whose intermediate tensors are in memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class RoundedLayer:
    """A layer of a float network, with weights rounded to eight bits.

    Attributes:
        operator: position of the layer.
        weights: the constant with its weights.
        bias: the constant with its biases; None where it has none.
        steps: the rounded weights in steps of their scales, −127 to 127, in the constant's shape.
        scales: one for each output channel.
        float_bias: biases that make up for the mean that rounding changed, (channels,); None where
            the layer has none.

    """

    operator: int
    weights: int
    bias: int | None
    steps: NDArray[np.int8]
    scales: NDArray[np.float32]
    float_bias: NDArray[np.float32] | None


def fit_rounding(network: QuantizedNetwork, progress: Callable[[int, int], None]) -> bytes:
    """Round the int8 weights of a network anew, in place, and correct its biases.

    Weights of convolutions, depthwise ones and dense layers are rounded, to the scales that the
    file has, or that `restore_weights` gives where they are wrong; those of other layers stay.

    Args:
        network: as it is now; where more inputs than it has can be made, they are.
        progress: is told how many layers are done, and of how many.

    Raises:
        UserError: no layer has such weights.

    """
    least = len(network.rows)
    network = network.with_content(restore_weights(network)).with_inputs(MOST_INPUTS)
    graph, original_graph = network.graph, network.original_graph
    targets = list(_targets(network))
    if not targets:
        raise UserError(
            f"{graph.source} has no int8 weights of {', '.join(UNFOLDED)} to round: "
            "repair it by another method"
        )
    edit = InPlaceEdit(network.content, graph.source)
    execution = StepwiseExecution(graph, network.rows)
    original = StepwiseExecution(original_graph, network.original_rows)
    with one_thread():
        for done, target in enumerate(targets):
            progress(done, len(targets))
            layer = target.layer
            execution.advance(graph, layer.operator)
            # The original may have its operators in another order.
            later = {to_round.layer.original_inputs[0] for to_round in targets[done:]}
            original.advance(original_graph, layer.original, later)
            output = graph.tensors[layer.output]
            count = max(least, _POSITIONS // (output.size // output.shape[-1]))
            given = execution.values(layer.inputs[0])[:count]
            wanted = original.values(layer.original_inputs[0])[:count]
            _round_in_place(edit, graph, target, _moments(graph, target, given, wanted))
            graph = Graph(edit.content(), graph.source)
    progress(len(targets), len(targets))
    return edit.content()


def round_original(
    original: bytes, rows: NDArray[np.generic], progress: Callable[[int, int], None]
) -> tuple[RoundedLayer, ...]:
    """Round the weights of a float network for a computation in float.

    Each layer has the inputs that it has in the float network itself. The scale of a channel is its
    greatest weight by 127.

    Args:
        original: the `.tflite` file.
        rows: inputs to fit with, (n, ...), encoded for it.
        progress: is told how many inputs are captured, and of how many.

    Returns:
        Its convolutions, depthwise ones and dense layers with float32 weights, in execution order.

    Raises:
        UserError: it has no such layers, or the runtime refuses it or an input.

    """
    graph = Graph(original, "the original")
    layers = [layer for layer in graph.layers if _has_float_weights(graph, layer)]
    if not layers:
        raise UserError(f"{graph.source} has no float32 weights of {', '.join(UNFOLDED)} to round")
    moments = {
        layer.index: _no_inputs(graph, layer.index, len(layer.inputs) > 2) for layer in layers
    }
    tensors = sorted({layer.inputs[0] for layer in layers})
    with one_thread():
        for begin in range(0, len(rows), _CAPTURED_AT_ONCE):
            progress(begin, len(rows))
            values = captured(original, rows[begin : begin + _CAPTURED_AT_ONCE], tensors)
            for layer in layers:
                given = values[layer.inputs[0]]
                stride = _stride(graph, layer.index, len(rows))
                for some in _in_parts(graph, layer.index, len(given)):
                    real = given[some].astype(np.float32)
                    moments[layer.index].add(unfolded_inputs(graph, layer.index, real, stride))
        progress(len(rows), len(rows))
        return tuple(_rounded_for_float(graph, layer, moments[layer.index]) for layer in layers)


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """A layer of a quantized network whose weights are rounded.

    Attributes:
        layer: it and its counterpart.
        weights: the constant with its weights.
        real: the original's weights, (groups, outputs, k).
        scales: those of the quantized weights, (groups, outputs).

    """

    layer: MatchedLayer
    weights: int
    real: Real
    scales: Real


def _targets(network: QuantizedNetwork) -> Iterator[_Target]:
    graph = network.graph
    for layer in network.layers:
        if layer.name not in UNFOLDED or layer.weights is None or layer.float_weights is None:
            continue
        weights, given = graph.tensors[layer.weights], graph.tensors[layer.inputs[0]]
        if weights.holds_int8_steps and (given.dtype == "float32" or len(given.scales) == 1):
            real = grouped_weights(graph, layer.operator, layer.float_weights).astype(np.float64)
            channels = real.shape[0] * real.shape[1]
            scales = np.resize(np.asarray(weights.scales), channels).reshape(real.shape[:2])
            yield _Target(layer, layer.weights, real, scales)


def _round_in_place(
    edit: InPlaceEdit, graph: Graph, target: _Target, moments: InputMoments
) -> None:
    layer, scales = target.layer, target.scales
    steps = rounded_by_gptq(moments.compensating(target.real), moments.hessian, scales)
    edit.set_values(target.weights, ungrouped_weights(graph, layer.operator, steps))
    left = moments.output_difference(target.real, steps.astype(np.float64) * scales[..., None])
    if has_integer_bias(graph, layer):
        write_bias(edit, graph, layer, real_bias(graph, layer) + left.ravel())
    elif layer.bias is not None and layer.float_bias is not None:
        bias = layer.float_bias + left.ravel()
        edit.set_values(layer.bias, bias.astype(np.float32))


def _rounded_for_float(graph: Graph, one: GraphOp, moments: InputMoments) -> RoundedLayer:
    values = graph.values(one.inputs[1]).astype(np.float64)
    weights = grouped_weights(graph, one.index, values)
    largest = np.abs(weights).max(axis=-1)
    # As float32, in which the file has them: weights are steps of exactly these.
    scales = np.where(largest > 0, largest / MOST_STEPS, 1.0).astype(np.float32)
    wide = scales.astype(np.float64)
    steps = rounded_by_gptq(weights, moments.hessian, wide)
    bias, float_bias = None, None
    if len(one.inputs) > 2:
        bias = one.inputs[2]
        left = moments.output_difference(weights, steps.astype(np.float64) * wide[..., None])
        float_bias = (graph.values(bias).astype(np.float64) + left.ravel()).astype(np.float32)
    rounded = ungrouped_weights(graph, one.index, steps)
    return RoundedLayer(one.index, one.inputs[1], bias, rounded, scales.ravel(), float_bias)


def _moments(
    graph: Graph, target: _Target, given: NDArray[np.generic], wanted: NDArray[np.generic]
) -> InputMoments:
    """Return the moments of a layer's inputs, raw values, beside the original's, float ones."""
    layer = target.layer
    groups, _, inputs = target.real.shape
    centred = layer.float_bias is not None
    moments = InputMoments(groups, inputs, centred=centred, original_weights=target.real)
    tensor = graph.tensors[layer.inputs[0]]
    stride = _stride(graph, layer.operator, len(given))
    for some in _in_parts(graph, layer.operator, len(given)):
        both = _real(tensor, given[some]), wanted[some].astype(np.float32, copy=False)
        moments.add(*(unfolded_inputs(graph, layer.operator, one, stride) for one in both))
    return moments


def _real(tensor: GraphTensor, raw: NDArray[np.generic]) -> NDArray[np.float32]:
    """Return real values as float32, which products of 8 bits and a scale are rounded to once."""
    values = raw.astype(np.float32, copy=False)
    if not tensor.scales:
        return values
    real: NDArray[np.float32] = (values - np.float32(tensor.zero_points[0])) * np.float32(
        tensor.scales[0]
    )
    return real


def _no_inputs(graph: Graph, operator: int, centred: bool) -> InputMoments:
    weights = graph.operators[operator].inputs[1]
    empty = np.empty(graph.tensors[weights].shape, np.int8)
    groups, _, inputs = grouped_weights(graph, operator, empty).shape
    return InputMoments(groups, inputs, centred=centred)


def _stride(graph: Graph, operator: int, count: int) -> int:
    """Return which positions of so many inputs are looked at: each, or one in an odd number.

    Rows of a picture are mostly even in length, so that all columns have their turn.
    """
    output = graph.tensors[graph.operators[operator].outputs[0]]
    positions = count * (output.size // output.shape[-1])
    return -(-positions // _MOST_POSITIONS) | 1


def _in_parts(graph: Graph, operator: int, count: int) -> Iterator[slice]:
    """Yield slices of inputs of which the unfolded ones fit into memory."""
    one = graph.operators[operator]
    output, weights = graph.tensors[one.outputs[0]], graph.tensors[one.inputs[1]]
    unfolded = output.size // output.shape[-1] * weights.size // weights.shape[0] * 4
    step = max(1, _MOST_BYTES // unfolded)
    yield from (slice(begin, begin + step) for begin in range(0, count, step))


def _has_float_weights(graph: Graph, one: GraphOp) -> bool:
    if one.name not in UNFOLDED:
        return False
    return all(
        graph.tensors[tensor].constant and graph.tensors[tensor].dtype == "float32"
        for tensor in one.inputs[1:3]
    )


class InputMoments:
    """The moments of a layer's inputs, and of the original's beside them.

    Biases make up for the difference of the means, so with `centred` all is as if the means of both
    were zero. Sums are then of what inputs differ by from the first of them: inputs that are always
    the same, such as clipped ones, would else leave what rounding leaves of equal sums, of any
    sign.
    """

    def __init__(
        self, groups: int, inputs: int, *, centred: bool, original_weights: Real | None = None
    ) -> None:
        """Begin without inputs.

        Args:
            groups: groups of channels; see `unfolded_inputs`.
            inputs: inputs of an output, k.
            centred: the layer has biases.
            original_weights: W_f, (groups, outputs, k), where no others will be asked for; None
                where any may be.

        """
        self._centred = centred
        # Of errors only W_f (X_f − X)ᵀ is needed. To multiply each with W_f first takes less time
        # than all products of two inputs where a layer has few outputs.
        self._weights: NDArray[np.float32] | None = None
        if original_weights is not None and 2 * original_weights.shape[1] < inputs:
            self._weights = original_weights.astype(np.float32)
        kept = inputs if self._weights is None else self._weights.shape[1]
        self._origin = np.zeros((groups, 1, inputs), np.float32)
        self._rows = 0
        self._products = np.zeros((groups, inputs, inputs))
        self._products_of_errors = np.zeros((groups, kept, inputs))
        self._sum = np.zeros((groups, inputs))
        self._sum_of_errors = np.zeros((groups, kept))

    def add(self, rows: NDArray[np.float32], original: NDArray[np.float32] | None = None) -> None:
        """Add inputs.

        Args:
            rows: X, (groups, rows, k).
            original: X_f, likewise; None where they are the same.

        """
        if self._centred and not self._rows:
            self._origin = rows[:, :1].copy()
        self._rows += rows.shape[1]
        moved = rows - self._origin
        self._products += np.matmul(moved.transpose(0, 2, 1), moved)
        self._sum += moved.sum(axis=1, dtype=np.float64)
        if original is not None:
            errors = original - rows
            if self._weights is not None:
                errors = np.matmul(errors, self._weights.transpose(0, 2, 1))
            self._products_of_errors += np.matmul(errors.transpose(0, 2, 1), moved)
            self._sum_of_errors += errors.sum(axis=1, dtype=np.float64)

    @property
    def hessian(self) -> Real:
        """XᵀX by the number of rows, (groups, k, k)."""
        return self._second_moment(self._products, self._sum)

    def compensating(self, weights: Real) -> Real:
        """Return weights with which the layer's output is nearest to the original's.

        They move the errors out that are in the layer's inputs, by ridge regression.

        Args:
            weights: W_f, (groups, outputs, k).

        """
        errors = self._second_moment(self._products_of_errors, self._sum_of_errors)
        moved = self._in_outputs(weights, errors).transpose(0, 2, 1)
        solved = np.linalg.solve(damped(self.hessian, _RIDGE), moved)
        return np.asarray(weights + solved.transpose(0, 2, 1))

    def output_difference(self, original: Real, weights: Real) -> Real:
        """Return the mean of X_f W_fᵀ − X Wᵀ, which the layer's biases make up for.

        Args:
            original: W_f, (groups, outputs, k).
            weights: W, likewise.

        Returns:
            (groups, outputs).

        """
        mean = self._origin[:, 0] + self._sum / self._rows
        errors = self._in_outputs(original, (self._sum_of_errors / self._rows)[..., None])
        return np.asarray((np.matmul(original - weights, mean[..., None]) + errors)[..., 0])

    def _in_outputs(self, weights: Real, errors: Real) -> Real:
        """Return what sums over errors, (groups, k, any), come to in the outputs of W_f."""
        return errors if self._weights is not None else np.matmul(weights, errors)

    def _second_moment(self, products: Real, total: Real) -> Real:
        moment = products / self._rows
        if not self._centred:
            return np.asarray(moment)
        means = total[:, :, None] * (self._sum[:, None, :] / self._rows**2)
        return np.asarray(moment - means)
