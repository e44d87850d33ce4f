"""Blocks of operators computed in float: the last one, a decoding tail, or what a search finds.

The search goes greedily forward, then backward. The shape is that of neural-compressor's mse_v2
(https://github.com/intel/neural-compressor, `strategy/mse_v2.py`): operators that harm most are
promoted one after the other, and then those are taken back that the gain does not need. Which ones
is measured at each step, not foretold by one ranking: the few blocks that the ranking has in front
are each promoted beside those that are already, and the one with the least error stays promoted.
It runs on the file as it was fitted before, and on the inputs to fit with: the points of its path
are candidates, and judged like all others on inputs that the search does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from edgeflare.errors import UserError
from edgeflare.repair.candidate_details import (
    Block,
    CandidateDetails,
    PrecisionDetails,
    PrecisionStep,
)
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import float_operators
from edgeflare.repair.fitting.weight_rounding import RoundedLayer
from edgeflare.repair.methods.requantization import rewritten
from edgeflare.repair.precision.blocks import blocks_of, joined_tail
from edgeflare.repair.precision.precision_promotion import (
    MarginComparison,
    Measure,
    PromotedModel,
    PromotedModels,
)
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


_AT_ONCE = 4
"""Blocks that are tried at a step, forward or backward, those first in the ranking."""

LEAST_GAIN = 0.01
"""The share of the error that promotions have to take away, and that taking back may give back in
all."""

POINTS = (1, 2, 4, 8, 16)
"""Least numbers of promoted blocks at which the path has a candidate; one more is at its end."""


def precision_candidates(
    network: QuantizedNetwork,
    fitted: QuantizedNetwork,
    rounded: Sequence[RoundedLayer],
    progress: StepProgress,
) -> list[RepairCandidate]:
    """Search the blocks to promote, and return the points of the path.

    Each is named by how many blocks are promoted, "float-2"; the first one's details have the path,
    too.

    Args:
        network: as it came.
        fitted: the same one, fitted in place, in which blocks are promoted.
        rounded: layers of the original with the weights that promoted blocks have in float.
        progress: is told how many files are measured, and of about how many.

    Raises:
        UserError: nothing can be promoted, or promoting nothing gains.

    """
    blocks = blocks_of(network)
    models = PromotedModels(fitted, MarginComparison(network), rounded)
    measure = _counted(models.measured, progress, len(blocks) * (_AT_ONCE + 1))
    alone = promotion_scores(blocks, measure)
    path = search_precision(ranked(blocks, alone), measure)
    before = models.measured(())
    if before is None or not path:
        raise UserError("no block gains on the inputs to fit with where it is computed in float")

    points = path_points(improvements(before, path), path[-1].after)
    return list(_candidates(models, points, tuple(map(_described, path))))


def _candidates(
    models: PromotedModels, points: Sequence[PromotedModel], path: tuple[PrecisionStep, ...]
) -> Iterator[RepairCandidate]:
    """Yield points as candidates, the first with the path, which all of them share."""
    for number, point in enumerate(points):
        made = models.made(point.blocks)
        promoted = tuple(block.name for block in point.blocks)
        details = PrecisionDetails(path=None if number else path, promoted=promoted)
        said = CandidateDetails(precision=details)
        yield RepairCandidate(f"float-{len(promoted)}", made.content, made.recipe, said)


def promotion_scores(blocks: Sequence[Block], measure: Measure) -> dict[str, float]:
    """Return by how much the error of the decisions falls where a block alone is promoted.

    Args:
        blocks: the blocks.
        measure: measures files of the model with some blocks promoted.

    Returns:
        The share of the error without promoted blocks that is gone, for each block's name; below 0
        where it grows, and minus infinity where there is no such file.

    """

    def error_with(promoted: Sequence[Block]) -> float:
        found = measure(promoted)
        return float("inf") if found is None else found.error.mean

    before = error_with(())
    return {block.name: 1.0 - error_with((block,)) / before if before else 0.0 for block in blocks}


def ranked(blocks: Sequence[Block], scores: Mapping[str, float]) -> list[Block]:
    """Return blocks by falling scores; of equal ones the first in execution order is before."""
    return sorted(blocks, key=lambda block: -scores[block.name])


def _counted(measure: Measure, progress: StepProgress, total: int) -> Measure:
    """Return what measures likewise, and says how often it did."""
    done = count()

    def counted(blocks: Sequence[Block]) -> PromotedModel | None:
        progress(min(next(done), total), total)
        return measure(blocks)

    return counted


def path_points(forward: Sequence[PromotedModel], last: PromotedModel) -> list[PromotedModel]:
    """Return some of the files on the way forward, and that at the end of the path.

    Those are the first ones with at least 1, 2, 4, 8 and 16 promoted blocks, but for one with as
    many as at the end: candidates are named by that number.
    """
    chosen: list[PromotedModel] = []
    for least in POINTS:
        found = next(
            (promoted_model for promoted_model in forward if len(promoted_model.blocks) >= least),
            None,
        )
        if found is not None and found not in chosen:
            chosen.append(found)
    return [
        *(
            promoted_model
            for promoted_model in chosen
            if len(promoted_model.blocks) != len(last.blocks)
        ),
        last,
    ]


def _described(step: _SearchStep) -> PrecisionStep:
    return PrecisionStep(
        block=step.block.name,
        taken_back=step.taken_back,
        promoted=len(step.after.blocks),
        margin_difference=step.after.error.mean,
        deviating=step.after.error.deviating,
        size_bytes=step.after.size,
    )


@dataclass(frozen=True, slots=True)
class _SearchStep:
    """A step of the search.

    Attributes:
        block: block that is promoted or taken back.
        taken_back: whether it is taken back.
        after: the file after the step.

    """

    block: Block
    taken_back: bool
    after: PromotedModel


def search_precision(ranking: Sequence[Block], measure: Measure) -> list[_SearchStep]:
    """Return the steps: forward to the least error that was met, and backward from there.

    Args:
        ranking: all blocks, those first that seem best to promote.
        measure: measures files of a network that has no promoted blocks of its own.

    Returns:
        Nothing where no step gains.

    """
    nothing = measure(())
    if nothing is None:
        return []
    forward = list(_promotions(nothing, ranking, measure))
    errors = [made.after.error.mean for made in forward]
    least = min(errors, default=float("inf"))
    if least >= nothing.error.mean * (1 - LEAST_GAIN):
        return []
    path = forward[: errors.index(least) + 1]
    return [*path, *_demotions(path[-1].after, least * (1 + LEAST_GAIN), measure)]


def improvements(before: PromotedModel, path: Sequence[_SearchStep]) -> list[PromotedModel]:
    """Return the files forward on a path that have less error than all before them.

    Args:
        before: the file without promoted blocks.
        path: as `search_precision` returns it.

    """
    found = [before]
    for step in path:
        if not step.taken_back and step.after.error.mean < found[-1].error.mean:
            found.append(step.after)
    return found[1:]


def _promotions(
    nothing: PromotedModel, ranking: Sequence[Block], measure: Measure
) -> Iterator[_SearchStep]:
    """Yield promotions until all blocks are promoted that can be.

    Each is the best among the first few of the ranking; it may add to the error, which often falls
    only when the neighbours of a block are promoted too.
    """
    now = nothing
    left = list(ranking)
    while left:
        tried = [
            _SearchStep(block, False, after)
            for block in left[:_AT_ONCE]
            if (after := measure((*now.blocks, block))) is not None
        ]
        if not tried:
            left = left[_AT_ONCE:]
            continue
        best = min(tried, key=lambda step: step.after.error.mean)
        left.remove(best.block)
        yield best
        now = best.after


def _demotions(now: PromotedModel, most: float, measure: Measure) -> Iterator[_SearchStep]:
    """Yield steps that take back the block that is needed least, until all seem to be needed.

    Each is the best among the first few of the ranking, by the error without each block alone.
    """
    left = [step.block for step in _taken_back(now, now.blocks, measure)]
    while len(now.blocks) > 1:
        best = next(iter(_taken_back(now, left[:_AT_ONCE], measure)), None)
        if best is None or best.after.error.mean > most:
            return
        left.remove(best.block)
        yield best
        now = best.after


def _taken_back(now: PromotedModel, blocks: Sequence[Block], measure: Measure) -> list[_SearchStep]:
    """Return steps that take back some blocks each alone, that with the least error first."""
    tried = [
        _SearchStep(block, True, after)
        for block in blocks
        if len(now.blocks) > 1
        and (after := measure([other for other in now.blocks if other != block])) is not None
    ]
    return sorted(tried, key=lambda step: step.after.error.mean)
