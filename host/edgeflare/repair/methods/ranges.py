"""Ranges of activations, chosen anew."""

from __future__ import annotations

from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import StepProgress
from edgeflare.repair.repair_method import RepairMethod


class Ranges(RepairMethod):
    """Fits ranges, and derives biases anew; see `fit_ranges`."""

    in_place = integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the file with new ranges."""
        return fit_ranges(network, progress)
