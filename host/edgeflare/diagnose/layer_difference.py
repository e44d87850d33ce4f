"""The difference of two arms: of one tensor, behind a layer, and where it begins in a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log10
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.models.model_probe import Values
from edgeflare.models.tflite_graph import Graph, GraphOp, GraphTensor
from edgeflare.record.json_types import Amount, Count, Share

Method = Literal["capture", "exposure", "prefix", "none"]
"""How the layers were observed: by capturing all tensors, by making all tensors outputs, by
bisection over prefixes of the network, or not at all."""

FLOAT_NOISE = 1e-5
"""Share of a float tensor's largest value: the same sum taken in another order differs by less."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a tensor's values from those that are expected.

    Attributes:
        max_error_steps: largest difference in quantization units; null for tensors that are not
            quantized.
        max_error: largest difference of the real values.
        cosine: cosine of the angle between the two, as vectors; 1 where both are zeros.
        snr_db: signal to noise in decibels; null where the two are equal.
        rmse: root mean square of the difference of the real values.
        parted: whether they differ, and by more than the order of summing explains.

    """

    max_error_steps: Amount | None
    max_error: Amount
    cosine: Annotated[float, msgspec.Meta(ge=-1, le=1)]
    snr_db: float | None
    rmse: Amount
    parted: bool


def difference(tensor: GraphTensor, wanted: Values, got: Values) -> Difference:
    """Return the difference of `got` from `wanted`, both raw values of a tensor.

    Values that are not finite are as far as can be from all but equal ones.
    """
    equal = wanted.tobytes() == got.tobytes()
    units = None
    if tensor.scales:
        units = float(np.abs(got.astype(np.int64) - wanted.astype(np.int64)).max(initial=0))
    signal, seen = tensor.real(wanted).ravel(), tensor.real(got).ravel()
    if equal:
        return Difference(units, 0.0, 1.0, None, 0.0, parted=False)
    apart = distances(signal, seen)
    finite = np.isfinite(signal) & np.isfinite(seen)
    if apart[~finite].any():
        return Difference(units, LARGEST, 0.0, -LARGEST_DB, LARGEST, parted=True)
    signal, seen, noise = signal[finite], seen[finite], apart[finite]
    if not signal.size:
        return Difference(units, 0.0, 1.0, None, 0.0, parted=False)
    largest = float(noise.max())
    power, noise_power = float((signal**2).mean()), float((noise**2).mean())
    # Whole numbers, such as classes or places, are no sums.
    sums = not tensor.scales and tensor.dtype.startswith("float")
    threshold = FLOAT_NOISE * float(np.abs(signal).max(initial=0.0)) if sums else 0.0
    return Difference(
        units,
        largest,
        cosine(signal, seen),
        decibels(power, noise_power),
        float(np.sqrt(noise_power)),
        parted=largest > threshold,
    )


def any_parted(graph: Graph, wanted: Mapping[int, Values], got: Mapping[int, Values]) -> bool:
    """Return whether one of some tensors of a network differs by more than sums explain."""
    return any(
        difference(graph.tensors[tensor], wanted[tensor], values).parted
        for tensor, values in got.items()
    )


LARGEST = float(2**53 - 1)
"""How far values that are not finite are from others: the largest number that documents hold."""


def distances(wanted: NDArray[np.float64], got: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far values are apart, which is infinity where one of both alone is not finite.

    NaN and NaN are equal, and so are infinities of one sign.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(got - wanted)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def in_digits(value: float, form: str) -> str:
    """Return a difference as people read it; of what is not finite, that."""
    return "not finite" if value >= LARGEST else f"{value:{form}}"


@dataclass(frozen=True, slots=True)
class LayerName:
    """The name of a layer, which is an operator of the network, as reports show it.

    Attributes:
        operator_index: position in execution order.
        name: the operator, as CONV_2D; a custom operator's own name.
        tensor: name of the first tensor that it puts out; empty where that or the tensor is
            missing.

    """

    operator_index: Count
    name: str
    tensor: str

    def __str__(self) -> str:
        return (
            "the input"
            if self.operator_index < 0
            else f"{self.name} (operator {self.operator_index})"
        )


def layer_name(graph: Graph, operator: GraphOp) -> LayerName:
    """Return the name of an operator's layer."""
    made = operator.outputs[:1]
    return LayerName(operator.index, operator.name, graph.tensors[made[0]].name if made else "")


@dataclass(frozen=True, slots=True)
class LayerDifference(LayerName):
    """How much device and twin differ behind a layer.

    Attributes:
        total: the difference that all layers up to here have caused; null where it was not
            observed.
        own: what the operator adds, when both sides give it the twin's inputs; null where it was
            not run in isolation.
        new_share: share of the total difference that this layer causes; null where not known.
        hidden: whether the device shows something else of it than what it computes, so that the
            total difference is not known.

    """

    total: Difference | None
    own: Difference | None
    new_share: Share | None
    hidden: bool


@dataclass(frozen=True, slots=True)
class WrongTogether:
    """Operators that a device computes rightly one by one, and wrongly together.

    Attributes:
        operators: their names in order, such as "SPLIT then ADD".
        arrangement: how they hang together, in the words of conformance runs.

    """

    operators: str
    arrangement: tuple[str, ...]

    def __str__(self) -> str:
        how = f" ({', '.join(self.arrangement)})" if self.arrangement else ""
        return f"{self.operators}{how}"


@dataclass(frozen=True, slots=True)
class KernelOnset:
    """Where device and twin begin to differ on one input.

    Attributes:
        method: how it was found: by capturing all tensors, by making all tensors outputs, by
            bisection over prefixes of the network, or not at all.
        onset: the layer where they begin to differ; null where they do not, or it was not found.
        first: whether no earlier layer differs; else the onset is one of perhaps several.
        most: the layer that adds most by itself; null where that is not known, or none does.
        layers: those that were observed, in execution order.
        perturbation: how far looking moved an output; null where it did not.
        device_runs: device queries spent.
        note: what could not be done, as a sentence without its full stop; else empty.
        together: the operators that are right alone and wrong together; null where they were not
            looked for, or not found.

    """

    method: Method
    onset: LayerName | None = None
    first: bool = False
    most: LayerName | None = None
    layers: tuple[LayerDifference, ...] = ()
    perturbation: Difference | None = None
    device_runs: Count = 0
    note: str = ""
    together: WrongTogether | None = None

    @property
    def right_alone(self) -> LayerName | None:
        """The layer where device and twin begin to differ, if none of all differs by itself."""
        own = {layer.operator_index: layer.own for layer in self.layers if layer.own is not None}
        if self.onset is None or self.onset.operator_index not in own:
            return None
        return None if any(difference.parted for difference in own.values()) else self.onset

    @property
    def in_layer(self) -> bool | None:
        """Whether some layer makes device and twin differ, given the same inputs.

        Either it does in isolation, or a layer before it was equal. An operator in isolation may
        run elsewhere than in its network: where the rest of a network falls back to the CPU, an
        accelerator may take one of these operators alone.

        Returns:
            None where no layer was observed.

        """
        own = [layer.own for layer in self.layers if layer.own is not None]
        if any(layer.parted for layer in own):
            return True
        equal = any(
            layer.total is not None and not layer.total.parted
            for layer in self.layers
            if self.onset is None or layer.operator_index < self.onset.operator_index
        )
        if equal and (self.onset is not None or self.layers[-1].hidden):
            return True
        return False if own else None


def layer_difference(
    layer: LayerName, total: Difference | None, own: Difference | None, *, hidden: bool = False
) -> LayerDifference:
    """Return how much device and twin differ behind a layer, by what was observed of it."""
    new_share = None
    if total is not None and own is not None:
        new_share = min(1.0, own.rmse / total.rmse) if total.rmse else 0.0
    return LayerDifference(
        layer.operator_index, layer.name, layer.tensor, total, own, new_share, hidden
    )


LARGEST_DB = 999.0
"""Decibels where one of the two is zero: JSON has no infinity."""


def cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the cosine of the angle between finite values as vectors.

    It is 1 where both are zero everywhere, and 0 where one is.
    """
    # Sums in place of BLAS, whose threads cost more than they save, and decide the last digit.
    lengths = float(np.sqrt((a * a).sum()) * np.sqrt((b * b).sum()))
    if not lengths:
        return float(not a.any() and not b.any())
    return float(np.clip((a * b).sum() / lengths, -1.0, 1.0))


def decibels(power: float, noise_power: float) -> float | None:
    """Return the signal to noise of two powers, bounded as JSON needs it; None without noise."""
    if not noise_power:
        return None
    if not power:
        return -LARGEST_DB
    return float(np.clip(10 * log10(power / noise_power), -LARGEST_DB, LARGEST_DB))
