"""Files of a compressed model with some of its blocks promoted, and the error of each.

The error is how far a file's decisions are from the original's, on the inputs to fit with. Of a few
hundred inputs too few deviate to tell two files apart, so it is the margin that is compared: the
probability of the original's label less the greatest of the others. A file whose margin is off by e
on an input has another label there if e takes away the whole margin. Near the boundary margins are
spread evenly, so how many inputs deviate is in proportion to the mean of |e|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.candidate_details import Block
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import Rewritten, float_operators
from edgeflare.repair.fitting.tensor_capture import each_answered
from edgeflare.repair.fitting.weight_rounding import RoundedLayer
from edgeflare.repair.precision.blocks import operators_of
from edgeflare.tasks.classification import softmax
from edgeflare_protos.kernel_sets import Kernels


@dataclass(frozen=True, slots=True)
class PromotedModel:
    """A file with some blocks promoted, as it was measured.

    Attributes:
        blocks: the promoted ones, in the order of their promotion.
        error: error of its margins on the inputs to fit with.
        size: size of the file, in bytes.

    """

    blocks: tuple[Block, ...]
    error: MarginDifference
    size: int


Measure = Callable[[Sequence[Block]], PromotedModel | None]
"""Returns the file with some blocks in float; None where there is none that runs."""


class PromotedModels:
    """Makes files of a network with blocks promoted to float, and measures each set once."""

    def __init__(
        self,
        network: QuantizedNetwork,
        comparison: MarginComparison,
        rounded: Sequence[RoundedLayer] = (),
    ) -> None:
        """Take a network; nothing is made yet.

        Args:
            network: network whose other blocks stay as they are.
            comparison: comparison with the original's answers.
            rounded: layers of the original whose weights are rounded already, as blocks in float
                have them.

        """
        self._network = network
        self._rounded = rounded
        self._comparison = comparison
        self._known: dict[tuple[int, ...], tuple[MarginDifference, int] | None] = {}

    def measured(self, blocks: Sequence[Block]) -> PromotedModel | None:
        """Return the file with these blocks in float; None where there is none that runs."""
        operators = operators_of(blocks)
        if operators not in self._known:
            self._known[operators] = self._measured(operators)
        found = self._known[operators]
        return None if found is None else PromotedModel(tuple(blocks), *found)

    def made(self, blocks: Sequence[Block]) -> Rewritten:
        """Make the file with some blocks promoted, one at least.

        Raises:
            UserError: the quantizer does not rewrite the model so.

        """
        return float_operators(self._network, operators_of(blocks), self._rounded)

    def _measured(self, operators: tuple[int, ...]) -> tuple[MarginDifference, int] | None:
        content = self._network.content
        try:
            if operators:
                content = float_operators(self._network, operators, self._rounded).content
            return self._comparison.error(content), len(content)
        except UserError:  # the quantizer or the runtime refuses this one file
            return None


Real = NDArray[np.float64]

_KERNELS: Kernels = "xnnpack"
"""Kernel set of the host that is fastest in float and in integers."""

_MISSING = 1e-3
"""Difference from 1 that the sum of probabilities in float may have."""


@dataclass(frozen=True, slots=True)
class MarginDifference:
    """How far a file's margins are off on the half of the inputs that is nearest to the boundary.

    Those are the inputs to fit with whose margin in the original is not above the median.

    Attributes:
        mean: mean of the absolute errors.
        deviating: inputs with another label than the original's, or tied.

    """

    mean: float
    deviating: int


class MarginComparison:
    """The original's answers to the inputs to fit with, computed once, beside those of files."""

    def __init__(self, network: QuantizedNetwork) -> None:
        """Run the original.

        Raises:
            UserError: it is no classifier with one input and one output, or does not run.

        """
        if network.task != DEFAULT_TASK:
            raise UserError(
                "precision is searched for by margins between classes, which the task"
                f" {network.task} does not have"
            )
        self._network = network
        every = np.arange(len(network.original_rows))
        outputs = self._outputs(network.original, every)
        sums_to_one = np.abs(outputs.sum(axis=1) - 1) < _MISSING
        self._probabilities = bool((outputs >= 0).all() and sums_to_one.all())
        self._labels = outputs.argmax(axis=1)
        self._wanted = self._lead(outputs, every)
        self._near = np.flatnonzero(self._wanted <= np.median(self._wanted))

    def error(self, content: bytes) -> MarginDifference:
        """Compare a file with the original.

        Args:
            content: a `.tflite` file with the interface of the compressed model, or in float.

        Raises:
            UserError: the runtime refuses it, or it gives no answer.

        """
        margins = self._lead(self._outputs(content, self._near), self._near)
        errors = np.abs(margins - self._wanted[self._near])
        return MarginDifference(float(errors.mean()), int((margins <= 0).sum()))

    def _lead(self, outputs: Real, rows: NDArray[np.intp]) -> Real:
        """Return the probability of the original's label less the greatest of the others."""
        probabilities = (outputs if self._probabilities else softmax(outputs)).copy()
        at = np.arange(len(rows)), self._labels[rows]
        own = probabilities[at]
        probabilities[at] = -np.inf
        return np.asarray(own - probabilities.max(axis=1))

    def _outputs(self, content: bytes, rows: NDArray[np.intp]) -> Real:
        graph = Graph(content, self._network.graph.source)
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            raise UserError(
                f"{graph.source} has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs,"
                " but precision is searched for in models with one each"
            )
        given, made = (graph.tensors[at] for at in (*graph.inputs, *graph.outputs))
        network = self._network
        encoded = network.original_rows if given.dtype == "float32" else network.rows
        found = []
        some = np.ascontiguousarray(encoded[rows].reshape(-1, *given.shape))
        with HostProbe(content, _KERNELS) as probe:
            for _, (raw,) in each_answered(probe, [some], "no answer to fit with"):
                found.append(made.real(raw).reshape(len(raw), -1))
        return np.concatenate(found)
