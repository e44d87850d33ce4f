"""The candidates of a precision search: the points of its path, in float and in int16.

The search runs on the file as it was fitted before, and on the inputs to fit with. The candidates
are judged like all others, on inputs that the search does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import Rewritten
from edgeflare.repair.fitting.weight_rounding import RoundedLayer
from edgeflare.repair.precision.block_errors import operator_errors
from edgeflare.repair.precision.blocks import Block, blocks_of, operators_of
from edgeflare.repair.precision.localization import (
    blamed,
    promotion_scores,
    ranked,
    residual_scores,
    spectrum_scores,
)
from edgeflare.repair.precision.margin_comparison import MarginComparison
from edgeflare.repair.precision.precision_search import (
    AT_ONCE,
    SearchStep,
    improvements,
    search_precision,
)
from edgeflare.repair.precision.promoted_models import (
    Measure,
    Precision,
    PromotedModel,
    PromotedModels,
)
from edgeflare.repair.repair_progress import StepProgress

POINTS = (1, 2, 4, 8, 16)
"""With how many promoted blocks at least the path has a candidate; another one is where it ends."""

INT16_POINTS = 2
"""How many of them, from the first on, are candidates in int16 too, whose kernels are slow."""

LOCALIZED_WITH = 128
"""Inputs by which operators are compared with the original's, at most half of them deviating."""


@dataclass(frozen=True, slots=True)
class PrecisionCandidate:
    """A point of the path.

    Attributes:
        name: "float-2" for two blocks in float.
        made: its file.
        details: its precision and its promoted blocks, as plain JSON values; the first candidate's
            have what the search found, too.

    """

    name: str
    made: Rewritten
    details: Mapping[str, Any]


def precision_candidates(
    network: QuantizedNetwork,
    fitted: QuantizedNetwork,
    rounded: Sequence[RoundedLayer],
    progress: StepProgress,
) -> list[PrecisionCandidate]:
    """Search the blocks to promote, and return the points of the path.

    Args:
        network: as it came; its blocks are blamed.
        fitted: the same one, fitted in place, in which blocks are promoted.
        rounded: layers of the original with the weights that promoted blocks have in float.
        progress: is told how many files are measured, and of about how many; first of those that
            localize, and then of those of the search.

    Returns:
        At least one candidate.

    Raises:
        UserError: nothing can be promoted, or promoting nothing gains.
        InfrastructureError: no worker process can be started, or it is lost.

    """
    blocks = blocks_of(network)
    comparison = MarginComparison(network)
    scores = localized_scores(network, blocks, comparison, progress)
    models = PromotedModels(fitted, comparison, rounded)
    measure = _counted(models.measured, progress, len(blocks) * (AT_ONCE + 1))
    alone = promotion_scores(blocks, measure)
    path = search_precision(ranked(blocks, alone), measure)
    before = models.measured(())
    if before is None or not path:
        raise UserError("no block gains on the inputs to fit with where it is computed in float")
    found = {
        "blocks": [one.to_json() for one in blocks],
        "scores": {way: _finite(of) for way, of in scores.items()},
        "blamed": {
            way: None if (one := blamed(blocks, of)) is None else one.name
            for way, of in scores.items()
        },
        "path": [_step(one) for one in path],
    }
    points = path_points(improvements(before, path), path[-1].after)
    wanted: list[tuple[PromotedModel, Precision]] = [(one, "float") for one in points]
    wanted += [(one, "int16") for one in points[:INT16_POINTS]]
    candidates = (_candidate(models, one, precision) for one, precision in wanted)
    made = [one for one in candidates if one is not None]
    return [replace(one, details={**found, **one.details}) for one in made[:1]] + made[1:]


def localized_scores(
    network: QuantizedNetwork,
    blocks: Sequence[Block],
    comparison: MarginComparison,
    progress: StepProgress,
) -> dict[str, dict[str, float]]:
    """Return the scores of each block by each of the three ways: promotion, residual, spectrum.

    Args:
        network: whose blocks they are.
        blocks: all of them.
        comparison: with the original's answers to the network's inputs.
        progress: is told how many files are measured, and of how many.

    """
    failing = comparison.deviating(network.content)
    some = _some(failing)
    few = replace(network, rows=network.rows[some], original_rows=network.original_rows[some])
    errors = operator_errors(few, operators_of(blocks))
    models = PromotedModels(network, comparison)
    measure = _counted(models.measured, progress, len(blocks) + 1)
    return {
        "promotion": promotion_scores(blocks, measure),
        "residual": residual_scores(blocks, errors),
        "spectrum": spectrum_scores(blocks, errors, failing[some]),
    }


def _counted(measure: Measure, progress: StepProgress, total: int) -> Measure:
    """Return what measures likewise, and says how often it did."""
    done = count()

    def counted(blocks: Sequence[Block]) -> PromotedModel | None:
        progress(min(next(done), total), total)
        return measure(blocks)

    return counted


def _some(failing: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return positions of failing inputs, and of others at equal distances."""
    bad, good = np.flatnonzero(failing)[: LOCALIZED_WITH // 2], np.flatnonzero(~failing)
    stride = max(1, -(-len(good) // (LOCALIZED_WITH - len(bad))))
    return np.sort(np.concatenate([bad, good[::stride]]))


def path_points(forward: Sequence[PromotedModel], last: PromotedModel) -> list[PromotedModel]:
    """Return some of the files on the way forward, and that at the end of the path.

    Those are the first ones with at least 1, 2, 4, 8 and 16 promoted blocks, but for one with as
    many as at the end: candidates are named by that number.
    """
    chosen: list[PromotedModel] = []
    for least in POINTS:
        found = next((one for one in forward if len(one.blocks) >= least), None)
        if found is not None and found not in chosen:
            chosen.append(found)
    return [*(one for one in chosen if len(one.blocks) != len(last.blocks)), last]


def _candidate(
    models: PromotedModels, point: PromotedModel, precision: Precision
) -> PrecisionCandidate | None:
    """Return a point as a candidate; None where the quantizer does not make it."""
    try:
        made = models.made(point.blocks, precision)
    except UserError:
        return None
    promoted = [one.name for one in point.blocks]
    name = f"{precision}-{len(promoted)}"
    return PrecisionCandidate(name, made, {"precision": precision, "promoted": promoted})


def _step(one: SearchStep) -> dict[str, Any]:
    return {
        "block": one.block.name,
        "taken_back": one.taken_back,
        "promoted": len(one.after.blocks),
        "margin_difference": one.after.error.mean,
        "deviating": one.after.error.deviating,
        "bytes": one.after.size,
    }


def _finite(scores: Mapping[str, float]) -> dict[str, float | None]:
    return {name: score if isfinite(score) else None for name, score in scores.items()}
