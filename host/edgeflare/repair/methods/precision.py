"""Blocks of operators computed in float: the last one, a decoding tail, or what a search finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import float_operators
from edgeflare.repair.methods.weights_only import rewritten
from edgeflare.repair.precision.blocks import joined_tail
from edgeflare.repair.precision.precision_candidates import precision_candidates
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import IN_PLACE, FitChains, RepairMethod


class Precision(RepairMethod):
    """Computes operators in float, the weights in 8 bits; see `float_operators`."""

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> Sequence[int]:
        """Return the last operator with weights; other plans choose others."""
        del progress
        return [layer.operator for layer in network.layers if layer.weights is not None][-1:]

    def write(self, network: QuantizedNetwork, fitted: Sequence[int]) -> bytes:
        """Return the file with operators in float."""
        return float_operators(network, fitted).content

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return the plans of a head, alone and in new ranges, of a tail and of a search."""
        heads = [self._head(name, chains, before) for before in ((), IN_PLACE[:1])]
        return (*heads, self._tail(name, chains), self._search(name, chains))

    def _head(self, name: str, chains: FitChains, before: tuple[str, ...]) -> CandidatePlan:
        candidate = "+".join((*before, "float-head"))

        def make(progress: StepProgress) -> Sequence[RepairCandidate]:
            fitted = chains.after(before, progress)
            last = self.fit(chains.network, progress)
            return (rewritten(candidate, float_operators(fitted, last)),)

        return CandidatePlan(candidate, name, make)

    def _tail(self, name: str, chains: FitChains) -> CandidatePlan:
        """Return the plan of outputs that are joined and decoded in float.

        Ranges are fitted afterwards, since what is joined in float need not be quantized alike.
        """

        def make(progress: StepProgress) -> Sequence[RepairCandidate]:
            network = chains.network
            made = float_operators(network, joined_tail(network))
            ranged = fit_ranges(network.with_content(made.content), progress)
            behind = RepairCandidate("float-tail+ranges", ranged, made.recipe)
            return rewritten("float-tail", made), behind

        return CandidatePlan("float-tail", name, make)

    def _search(self, name: str, chains: FitChains) -> CandidatePlan:
        """Return the plan of a search, which goes on from what is fitted in place."""

        def make(progress: StepProgress) -> Sequence[RepairCandidate]:
            fitted = chains.after(IN_PLACE, progress)
            rounded = chains.fitted(("weights-only",), progress)
            points = precision_candidates(chains.network, fitted, rounded, progress)
            return [replace(point, name="+".join((*IN_PLACE, point.name))) for point in points]

        return CandidatePlan("precision-search", name, make, Effort.SEARCH, "weights-only")
