"""The original, quantized anew as a whole: in 8 bits, or its weights alone in 8 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgeflare.errors import UserError
from edgeflare.repair.fitting.float_model import Recipe
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import (
    Rewritten,
    compressed_as,
    computes_in_8_bits,
    weights_only,
)
from edgeflare.repair.fitting.weight_rounding import RoundedLayer, round_original
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import FitChains, RepairMethod


class Calibration(RepairMethod):
    """Quantizes the original with ranges of the inputs to fit with; see `fit_calibration`."""

    integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> Rewritten:
        """Return the original in 8 bits."""
        return fit_calibration(network, progress)

    def write(self, network: QuantizedNetwork, fitted: Rewritten) -> bytes:
        """Return its file."""
        del network
        return fitted.content

    def recipe(self, fitted: Rewritten) -> Recipe:
        """Return what it is quantized by."""
        return fitted.recipe

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return a plan alone, and one with new ranges behind."""
        return [chains.plan(chain, name) for chain in (name, f"{name}+ranges")]


def fit_calibration(network: QuantizedNetwork, progress: Callable[[int, int], None]) -> Rewritten:
    """Return the original, quantized in 8 bits anew.

    Activations have the range of their values on the inputs to fit with, the model's own inputs and
    outputs too, and weights a scale for each channel, whatever the compressed model has.

    Args:
        network: its compressed model computes in 8 bits.
        progress: is told that nothing is done, and that all is.

    Raises:
        UserError: the compressed model has its weights alone in 8 bits, or is compressed otherwise.
        RewritingFailed: the library does not rewrite the network so.

    """
    if not computes_in_8_bits(network.graph):
        raise UserError("the compressed model has its weights alone in 8 bits: nothing is ranged")
    progress(0, 1)
    made = compressed_as(network.content, network)
    progress(1, 1)
    return made


class WeightsOnly(RepairMethod):
    """Stores weights alone in 8 bits; see `weights_only`."""

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> Sequence[RoundedLayer]:
        """Return the original's layers with weights rounded by GPTQ."""
        return round_original(network.original, network.original_rows, progress)

    def write(self, network: QuantizedNetwork, fitted: Sequence[RoundedLayer]) -> bytes:
        """Return the original with these weights."""
        return weights_only(network, fitted).content

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return a plan with weights rounded to the nearest, and one with those of GPTQ."""

        def nearest(_: StepProgress) -> Sequence[RepairCandidate]:
            return (rewritten(name, weights_only(chains.network)),)

        def rounded(progress: StepProgress) -> Sequence[RepairCandidate]:
            made = weights_only(chains.network, chains.fitted((name,), progress))
            return (rewritten(f"rounding+{name}", made),)

        return (
            CandidatePlan(name, name, nearest),
            CandidatePlan(f"rounding+{name}", name, rounded, Effort.ROUNDING),
        )


def rewritten(name: str, made: Rewritten) -> RepairCandidate:
    """Return a file that the quantizer has made as a candidate."""
    return RepairCandidate(name, made.content, made.recipe)
