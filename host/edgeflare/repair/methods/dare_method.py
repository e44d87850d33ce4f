"""Weights of slices tuned towards the original's layer before the last, by name alone."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import IN_PLACE, FitChains, RepairMethod


class Dare(RepairMethod):
    """Tunes slices of a network; see `fit_dare`."""

    in_place = integers = differentiates = True
    automatic = False

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the file with tuned weights."""
        from edgeflare.repair.post_training.dare import fit_dare  # noqa: PLC0415 - needs jax

        return fit_dare(network, self.request.slice_percent, self.new_rng(), progress)

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return one plan: alone, and behind new ranges and rounded weights."""

        def make(progress: StepProgress) -> Sequence[RepairCandidate]:
            return [chains.candidate((*before, name), progress) for before in ((), IN_PLACE)]

        return (CandidatePlan(name, name, make, Effort.GRADIENTS),)
