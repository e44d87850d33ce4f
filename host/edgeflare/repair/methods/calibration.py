"""The original, quantized in 8 bits anew, alone and with new ranges behind."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import fit_calibration
from edgeflare.repair.repair_candidate import CandidatePlan, StepProgress
from edgeflare.repair.repair_method import FitChains, RepairMethod


class Calibration(RepairMethod):
    """Quantizes the original with ranges of the inputs to fit with; see `fit_calibration`."""

    integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the original in 8 bits."""
        return fit_calibration(network, progress)

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return a plan alone, and one with new ranges behind."""
        return [chains.plan(chain, name) for chain in (name, f"{name}+ranges")]
