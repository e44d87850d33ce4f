"""Biases, corrected by the mean error of each channel."""

from __future__ import annotations

from edgeflare.repair.fitting.biases import fit_biases
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import StepProgress
from edgeflare.repair.repair_method import RepairMethod


class Bias(RepairMethod):
    """Corrects biases; see `fit_biases`."""

    in_place = integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the file with corrected biases."""
        return fit_biases(network, progress)
