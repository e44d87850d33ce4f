"""Weights rounded by what their layers read, in new ranges and alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.weight_rounding import fit_rounding
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, StepProgress
from edgeflare.repair.repair_method import FitChains, RepairMethod


class Rounding(RepairMethod):
    """Rounds weights by GPTQ, and corrects biases; see `fit_rounding`."""

    in_place = integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the file with weights rounded anew."""
        return fit_rounding(network, progress)

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return a plan behind new ranges, and one alone, in case these lose."""
        behind = chains.plan(f"ranges+{name}", name, Effort.ROUNDING)
        alone = chains.plan(name, name, Effort.ROUNDING)
        return behind, replace(alone, instead_of="ranges")
