"""Weights in 8 bits, and everything computed in float; rounded to the nearest, or by GPTQ."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import Rewritten, weights_only
from edgeflare.repair.fitting.weight_rounding import RoundedLayer, round_original
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import FitChains, RepairMethod


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
