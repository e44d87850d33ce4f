"""Where twin and original part by more than quantization explains.

Each operator of the original is given what the twin's operator was given, dequantized, so what its
predecessors lost does not count. Quantization explains what is then left between the two:

- rounding of the output, and what clipping to the output's range takes away;
- rounding of the weights: each is off by an error that is uniform over its quantization step, so
  over all inputs x of a sum these errors have the variance Σ x² Δ²/12. The operator itself, given
  x² for its inputs and Δ²/12 for its weights, computes it for every output;
- where weights alone are quantized, rounding of the inputs at run time, likewise.

And quantization explains that each constant is off by half its step, and no constant by more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.difference import Difference, difference
from edgeflare.diagnose.layer import Layer, layer_of
from edgeflare.diagnose.matching import By, match_layers
from edgeflare.diagnose.side import State
from edgeflare.errors import UserError
from edgeflare.models.graph import Graph, GraphTensor, Operator, Part
from edgeflare.models.probe import Probe, ProbeFailed, Values

_WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Operators that are linear in a constant, which is their second tensor but for one."""

_SIGMAS = 7.0
"""A sum of that many rounding errors is nowhere near normal in its far tails, and a network has a
million of them."""

_ROUNDING_UNITS = 1.0
"""Of an operator's output: half a unit, and kernels that round twice."""

_TABLE_UNITS = 2.0
"""Of operators without weights, some of which are computed by tables or in fixed point."""

_FLOAT_SHARE = 1e-4
"""Of a float tensor's largest value: what other kernels may differ by."""

_HALF = 0.5 + 1e-3
"""A constant is rounded to the nearest step, in float32."""


@dataclass(frozen=True, slots=True)
class LayerLoss:
    """What compression did to one layer.

    Attributes:
        layer: of the compressed model.
        matched_by: how the original's layer was found.
        total: between the two models' tensors behind the layer, real values; None if not seen.
        residual: largest difference that is new in this layer, in units of its output (of its
            largest value, where that is not quantized).
        explained: what quantization explains of it there, in the same units.
        constants: largest difference of a constant from the original's, in its own steps; None
            where there is none that could be compared.
        options: names of options (strides, padding, …) that are not the original's.

    """

    layer: Layer
    matched_by: By
    total: Difference | None
    residual: float
    explained: float
    constants: float | None
    options: tuple[str, ...]

    @property
    def beyond(self) -> bool:
        """Whether more happened than quantization explains."""
        changed = self.constants is not None and self.constants > _HALF
        return self.residual > self.explained or changed or bool(self.options)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **self.layer.to_json(),
            "matched_by": self.matched_by,
            "total": None if self.total is None else self.total.to_json(),
            "residual": _finite(self.residual),
            "explained": _finite(self.explained),
            "constants": None if self.constants is None else _finite(self.constants),
            "options": list(self.options),
            "beyond": self.beyond,
        }


@dataclass(frozen=True, slots=True)
class Loss:
    """What compression did to the network on one input.

    Attributes:
        first: the first layer that parts from the original's by more than quantization explains;
            None where none does, or this could not be seen.
        layers: those that have a counterpart, in execution order.
        unmatched: layers of the compressed model that have none.
        note: what could not be done, as a sentence without its full stop; else empty.

    """

    first: Layer | None = None
    layers: tuple[LayerLoss, ...] = ()
    unmatched: tuple[Layer, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "first": None if self.first is None else self.first.to_json(),
            "note": self.note,
            "unmatched": [layer.to_json() for layer in self.unmatched],
            "layers": [layer.to_json() for layer in self.layers],
        }


class LossFinder:
    """Finds what compression did; what it opens serves all inputs, until it is closed.

    Args:
        compressed: the graph of the compressed model.
        original: the graph of the original.
        content: the original's file.
        opens: opens models on the host; True to capture.

    """

    def __init__(
        self,
        compressed: Graph,
        original: Graph,
        content: bytes,
        opens: Callable[[bytes, bool], Probe],
    ) -> None:
        self._compressed = compressed
        self._original = original
        self._content = content
        self._opens = opens
        self._stack = ExitStack()
        self._probes: dict[tuple[bytes, bool], Probe] = {}
        self._matched = match_layers(compressed, original)
        self._constants = {
            mine: self._constants_of(mine, yours) for mine, (yours, _) in self._matched.items()
        }

    def close(self) -> None:
        """Close all that was opened."""
        self._stack.close()

    def find(self, twin: State, original_input: Values) -> Loss:
        """Find what compression did on an input.

        Args:
            twin: what was seen of the twin, by tensor of its graph.
            original_input: (1, *input shape without its batch dimension), as the original takes it.

        """
        if not self._matched:
            return Loss(note="no layer of the original is like one of the compressed model")
        pairs = {
            mine: (yours, by)
            for mine, (yours, by) in self._matched.items()
            if self._seen(self._compressed.operators[mine], twin)
        }
        if not pairs:
            return Loss(note="the twin's layers cannot be seen")
        try:
            seen = self._capture(original_input)
            layers = self._losses(pairs, twin, seen)
        except (ProbeFailed, UserError) as failed:
            return Loss(note=f"the original's layers cannot be seen: {failed}")
        unmatched = [one for one in self._compressed.layers if one.index not in self._matched]
        return Loss(
            next((one.layer for one in layers if one.beyond), None),
            tuple(layers),
            tuple(
                layer_of(self._compressed, one)
                for one in unmatched
                if one.name not in ("QUANTIZE", "DEQUANTIZE")
            ),
        )

    def _losses(
        self, pairs: Mapping[int, tuple[int, By]], twin: State, seen: State
    ) -> list[LayerLoss]:
        wanted = self._fed_as_the_twin({mine: yours for mine, (yours, _) in pairs.items()}, twin)
        variances = self._variances({mine: yours for mine, (yours, _) in pairs.items()}, twin)
        return [
            self._loss(mine, by, twin, seen.get(self._made(yours)), wanted[mine], variances)
            for mine, (yours, by) in pairs.items()
        ]

    def _loss(
        self,
        mine: int,
        by: By,
        twin: State,
        captured: Values | None,
        wanted: NDArray[np.float64],
        variances: Mapping[int, NDArray[np.float64]],
    ) -> LayerLoss:
        one = self._compressed.operators[mine]
        tensor = self._compressed.tensors[one.outputs[0]]
        raw = twin[tensor.index]
        got = tensor.real(raw)
        unit, noise = _unit(tensor, wanted), np.sqrt(variances.get(mine, np.zeros(())))
        residual = np.abs(got - _clipped(tensor, wanted)) / unit
        least = _ROUNDING_UNITS if one.name in _WEIGHTED else _TABLE_UNITS
        explained = np.broadcast_to(least + _SIGMAS * noise / unit, residual.shape)
        worst = int((residual - explained).argmax())
        total = None
        if captured is not None and captured.shape == got.shape:
            total = difference(_as_real(tensor), captured.astype(np.float64), got)
        constants, options = self._constants[mine]
        return LayerLoss(
            layer_of(self._compressed, one),
            by,
            total,
            float(residual.ravel()[worst]),
            float(explained.ravel()[worst]),
            constants,
            options,
        )

    # Running the original.

    def _capture(self, original_input: Values) -> State:
        probe = self._probe(self._content, capture=True)
        return dict(zip(probe.made, probe.run([original_input]), strict=True))

    def _fed_as_the_twin(
        self, pairs: Mapping[int, int], twin: State
    ) -> dict[int, NDArray[np.float64]]:
        """Return what the original's operators put out when given what the twin's were."""
        part = self._original.islands(pairs.values())
        inputs = [values for mine in pairs for values in self._feeds(mine, twin)]
        outputs = self._run(part, inputs)
        return {mine: outputs[self._made(yours)] for mine, yours in pairs.items()}

    def _variances(self, pairs: Mapping[int, int], twin: State) -> dict[int, NDArray[np.float64]]:
        """Return the variance of what each operator puts out, by rounded weights and inputs."""
        weighted = {
            mine: yours
            for mine, yours in pairs.items()
            if self._compressed.operators[mine].name in _WEIGHTED
            and getattr(self._weights(self._original, yours), "constant", False)
            and self._weights(self._compressed, mine) is not None
        }
        if not weighted:
            return {}
        squares = {mine: self._feeds(mine, twin)[0] ** 2 for mine in weighted}
        rounding = {
            index: values
            for mine, yours in weighted.items()
            for index, values in self._constant_variances(mine, yours).items()
        }
        found = self._linear(weighted, squares, rounding)
        hybrid = {mine: yours for mine, yours in weighted.items() if self._hybrid(mine)}
        if hybrid:
            rounded = {mine: _input_variance(squares[mine]) for mine in hybrid}
            squared = dict(self._squared_weights(yours) for yours in hybrid.values())
            for mine, variance in self._linear(hybrid, rounded, squared).items():
                found[mine] = found[mine] + variance
        return found

    def _linear(
        self,
        pairs: Mapping[int, int],
        inputs: Mapping[int, NDArray[np.float64]],
        constants: Mapping[int, NDArray[np.float64]],
    ) -> dict[int, NDArray[np.float64]]:
        """Run operators with other constants, zeros where none are named, and no activation."""
        values: dict[int, NDArray[np.generic]] = {}
        for yours in pairs.values():
            for index in self._original.operators[yours].inputs:
                tensor = self._original.tensors[index]
                if tensor.constant and tensor.dtype == "float32":
                    zeros = np.zeros(tensor.shape)
                    values[index] = constants.get(index, zeros).astype(np.float32)
        part = self._original.islands(pairs.values(), values, linear=True)
        outputs = self._run(part, [inputs[mine] for mine in pairs])
        return {mine: np.maximum(outputs[self._made(yours)], 0.0) for mine, yours in pairs.items()}

    def _run(self, part: Part, inputs: list[NDArray[np.float64]]) -> dict[int, NDArray[np.float64]]:
        given = [
            values.astype(self._original.tensors[tensor].dtype)
            for tensor, values in zip(part.inputs, inputs, strict=True)
        ]
        outputs = self._probe(part.content).run(given)
        return {
            tensor: self._original.tensors[tensor].real(values)
            for tensor, values in zip(part.outputs, outputs, strict=True)
        }

    def _probe(self, content: bytes, *, capture: bool = False) -> Probe:
        key = (content, capture)
        if key not in self._probes:
            self._probes[key] = self._stack.enter_context(closing(self._opens(content, capture)))
        return self._probes[key]

    # What is compared with what.

    def _seen(self, one: Operator, twin: State) -> bool:
        return all(tensor in twin for tensor in (*self._compressed.fed(one), *one.outputs))

    def _feeds(self, mine: int, twin: State) -> list[NDArray[np.float64]]:
        """Return the real values of what the twin's operator was given."""
        one = self._compressed.operators[mine]
        return [
            self._compressed.tensors[tensor].real(twin[tensor])
            for tensor in self._compressed.fed(one)
        ]

    def _made(self, yours: int) -> int:
        return self._original.operators[yours].outputs[0]

    def _weights(self, graph: Graph, index: int) -> GraphTensor | None:
        """Return the constant that an operator multiplies its input with, if it is plain."""
        one = graph.operators[index]
        fed = graph.fed(one)
        constants = [graph.tensors[tensor] for tensor in one.inputs if tensor not in fed]
        constants = [tensor for tensor in constants if len(tensor.shape) > 1]
        return constants[0] if len(fed) == 1 and len(constants) == 1 else None

    def _values(self, graph: Graph, tensor: GraphTensor) -> NDArray[np.float64] | None:
        """Return the real values of a constant, also of one that an operator prepares."""
        if tensor.constant:
            return tensor.real(graph.values(tensor.index))
        maker = graph.operators[graph.made_by[tensor.index]]
        if maker.name == "DEQUANTIZE" and graph.tensors[maker.inputs[0]].constant:
            return self._values(graph, graph.tensors[maker.inputs[0]])
        return None

    def _squared_weights(self, yours: int) -> tuple[int, NDArray[np.float64]]:
        weights = self._weights(self._original, yours)
        assert weights is not None  # noqa: S101 - asked before
        return weights.index, weights.real(self._original.values(weights.index)) ** 2

    def _hybrid(self, mine: int) -> bool:
        """Whether an operator has quantized weights and rounds its float input as it runs."""
        one = self._compressed.operators[mine]
        weights = self._weights(self._compressed, mine)
        fed = self._compressed.tensors[self._compressed.fed(one)[0]]
        return weights is not None and bool(weights.scales) and not fed.scales

    def _constant_variances(self, mine: int, yours: int) -> dict[int, NDArray[np.float64]]:
        """Return the variance of each of the original's constants by its rounding."""
        found = {}
        for first, second in self._constants_in_pairs(mine, yours):
            step = np.broadcast_to(_step(self._compressed, first), second.shape)
            found[second.index] = step**2 / 12
        return found

    def _constants_in_pairs(
        self, mine: int, yours: int
    ) -> Iterator[tuple[GraphTensor, GraphTensor]]:
        """Yield the constants of two operators that stand in the same place."""
        one, other = self._compressed.operators[mine], self._original.operators[yours]
        fed = self._compressed.fed(one)
        for ours, theirs in zip(one.inputs, other.inputs, strict=False):
            first, second = self._compressed.tensors[ours], self._original.tensors[theirs]
            alike = ours not in fed and first.shape == second.shape
            if alike and second.constant and second.dtype == "float32":
                yield first, second

    def _constants_of(self, mine: int, yours: int) -> tuple[float | None, tuple[str, ...]]:
        """Compare an operator's constants and options with the original's."""
        worst = None
        for first, second in self._constants_in_pairs(mine, yours):
            got, wanted = (
                self._values(self._compressed, first),
                self._values(self._original, second),
            )
            if got is None or wanted is None:
                continue
            # float32 on both sides: what is left is the last digit.
            least = 2.0 * np.finfo(np.float32).eps * np.abs(wanted)
            step = np.maximum(_step(self._compressed, first), least)
            off = np.abs(got - wanted) / np.maximum(step, np.finfo(np.float64).tiny)
            worst = max(worst or 0.0, float(off.max(initial=0.0)))
        return worst, self._other_options(mine, yours)

    def _other_options(self, mine: int, yours: int) -> tuple[str, ...]:
        ours, theirs = self._compressed.options(mine), self._original.options(yours)
        return tuple(
            name
            for name in ours.keys() & theirs.keys()
            if name in _GEOMETRY and ours[name] != theirs[name]
        )


_GEOMETRY = frozenset(
    {
        "padding",
        "strideW",
        "strideH",
        "dilationWFactor",
        "dilationHFactor",
        "depthMultiplier",
        "filterWidth",
        "filterHeight",
        "fusedActivationFunction",
        "axis",
        "keepDims",
        "beta",
    }
)
"""Options that compression has no reason to change."""


def _unit(tensor: GraphTensor, wanted: NDArray[np.float64]) -> float:
    """Return what a residual is counted in."""
    if tensor.scales:
        return max(tensor.scales)
    return _FLOAT_SHARE * float(np.abs(wanted).max(initial=0.0)) or 1.0


def _step(graph: Graph, tensor: GraphTensor) -> NDArray[np.float64]:
    """Return the quantization steps of a constant, so that they broadcast with its values."""
    if tensor.scales:
        along = [1] * len(tensor.shape)
        if len(tensor.scales) > 1:
            along[tensor.axis] = -1
        return np.asarray(tensor.scales, np.float64).reshape(along)
    maker = graph.made_by.get(tensor.index)
    if tensor.dtype == "float16" or maker is not None:
        source = tensor if maker is None else graph.tensors[graph.operators[maker].inputs[0]]
        values = np.abs(source.real(graph.values(source.index)))
        smallest = float(np.finfo(np.float16).tiny)
        return np.asarray(np.maximum(values, smallest) * np.finfo(np.float16).eps)
    return np.zeros((1,) * len(tensor.shape))


def _input_variance(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance of inputs that are rounded to 8 bits as the model runs."""
    step = np.sqrt(squares.max(initial=0.0)) / 127
    return np.full_like(squares, step**2 / 12)


def _clipped(tensor: GraphTensor, real: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values brought into the range that a tensor can hold."""
    if not tensor.scales:
        return real
    limits = np.iinfo(tensor.dtype)
    low, high = (
        (limit - tensor.zero_points[0]) * tensor.scales[0] for limit in (limits.min, limits.max)
    )
    return np.clip(real, low, high)


def _as_real(tensor: GraphTensor) -> GraphTensor:
    """Return a tensor as it would be if it were not quantized."""
    return GraphTensor(
        tensor.index, tensor.name, tensor.shape, "float64", (), (), 0, constant=False
    )


def _finite(value: float) -> float:
    return float(np.clip(value, -1e300, 1e300)) if np.isfinite(value) else 1e300
