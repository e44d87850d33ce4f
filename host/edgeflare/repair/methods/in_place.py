"""Methods that overwrite numbers in their places by one fit each: ranges, rounding, gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeflare.repair.candidate_details import NO_DETAILS
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.weight_rounding import fit_rounding
from edgeflare.repair.methods.rewrites import rewrite_details
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import IN_PLACE, FitChains, RepairMethod


class Ranges(RepairMethod):
    """Fits ranges, and derives biases anew; see `fit_ranges`."""

    in_place = integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the file with new ranges."""
        return fit_ranges(network, progress)


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


class Learning(RepairMethod):
    """Moves a network towards the original by gradients; see `fit_distillation`."""

    in_place = integers = differentiates = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> bytes:
        """Return the file with what was learned."""
        from edgeflare.repair.fitting.distillation import (  # noqa: PLC0415 - needs jax
            fit_distillation,
        )

        return fit_distillation(network, self.new_rng(), progress)

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return a plan behind the longest chain that the network and `--in-place` allow.

        "auto" leaves it out with a large network, see `require_quick`.
        """

        def make(progress: StepProgress) -> Sequence[RepairCandidate]:
            from edgeflare.repair.fitting.distillation import (  # noqa: PLC0415 - needs jax
                require_learnable,
                require_quick,
            )

            if self.request.method == "auto":
                require_quick(chains.network)
            require_learnable(chains.network)
            before = chains.farthest(progress, rewrites=not self.request.in_place)
            details = NO_DETAILS
            if "rewrites" in before:
                details = rewrite_details(chains.fitted(("rewrites",), progress))
            return (chains.candidate((*before, name), progress, details),)

        return (CandidatePlan(name, name, make, Effort.GRADIENTS),)


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
