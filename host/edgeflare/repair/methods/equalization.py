"""Channels of activations, scaled so that each makes use of the steps that all of them share."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.repair.fitting.channel_equalization import equalize_channels
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, StepProgress
from edgeflare.repair.repair_method import FitChains, RepairMethod


class Equalization(RepairMethod):
    """Scales channels, in the original too, to which further methods are fitted."""

    in_place = integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> QuantizedNetwork:
        """Return the network with scaled channels; it takes a moment, and `progress` hears none."""
        del progress
        return equalize_channels(network)

    def write(self, network: QuantizedNetwork, fitted: QuantizedNetwork) -> bytes:
        """Return the scaled network's file."""
        del network
        return fitted.content

    def changed(self, network: QuantizedNetwork, fitted: QuantizedNetwork) -> QuantizedNetwork:
        """Return the scaled network."""
        del network
        return fitted

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return a plan with new ranges and rounded weights behind, which it needs."""
        return (chains.plan(f"{name}+ranges+rounding", name, Effort.ROUNDING),)
