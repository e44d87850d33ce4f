"""Weights, biases and ranges learned from the original's answers, behind all that fits in place."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.repair.candidate_details import NO_DETAILS
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.methods.rewrites import rewrite_details
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import FitChains, RepairMethod


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
