"""Tensors that get steps of their own, alone and with what fits in place behind."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.repair.candidate_details import CandidateDetails, RewriteDetails
from edgeflare.repair.fitting.own_steps import OwnSteps, give_own_steps
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import IN_PLACE, FitChains, RepairMethod


class Rewrites(RepairMethod):
    """Rewrites operators that force one step on unlike values; see `give_own_steps`."""

    integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> OwnSteps:
        """Return what is rewritten."""
        return give_own_steps(network, progress)

    def write(self, network: QuantizedNetwork, fitted: OwnSteps) -> bytes:
        """Return the rewritten file."""
        del network
        return fitted.content

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return one plan, since all of its candidates are of the same rewrites."""

        def make(progress: StepProgress) -> Sequence[RepairCandidate]:
            details = rewrite_details(chains.fitted((name,), progress))
            behind = (), IN_PLACE[:1], IN_PLACE, chains.farthest(progress)[1:]
            return [
                chains.candidate((name, *some), progress, details) for some in dict.fromkeys(behind)
            ]

        return (CandidatePlan(name, name, make, Effort.FIRST),)


def rewrite_details(own: OwnSteps) -> CandidateDetails:
    """Return what rewrites say of a candidate."""
    return CandidateDetails(rewrites=RewriteDetails(rewrites=own.rewrites))
