"""What draws the models of a run: as it was asked for, and each in its turn."""

from __future__ import annotations

import numpy as np

from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft_mutation import MutationContext
from edgeflare.conform.drafts.draft_source import DraftSource
from edgeflare.conform.drafts.memo_drawing import MemoDrawing
from edgeflare.conform.drafts.model_reading import ModelReading
from edgeflare.conform.drafts.near_drawing import NearDrawing
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.drafts.pair_drawing import PairDrawing
from edgeflare.conform.drafts.seed_models import DRAWN_SEEDS, drawn_seeds, model_seeds
from edgeflare.conform.drafts.seed_reduction import reduced
from edgeflare.conform.drafts.uniform_drawing import UniformDrawing
from edgeflare.conform.record.conform_request import ConformRequest


def draft_sources(
    request: ConformRequest, reading: ModelReading | None, coverage: Coverage
) -> list[DraftSource]:
    """Return what draws models, each in its turn, with a generator of its own.

    Args:
        request: what was asked.
        reading: the operators of the model that the user named; None for none.
        coverage: that all of them count by.

    """
    first, second, third = np.random.default_rng(request.rng_seed).spawn(3)
    sources: list[DraftSource] = []
    if reading is not None:
        sources.append(NearDrawing(reading.distinct, coverage, first))
    if request.drawing == "memo":
        sources.append(_memo(coverage, reading, second))
    elif reading is None:
        sources.append(UniformDrawing(coverage, first))
    if request.pairs:
        sources.append(PairDrawing(coverage, third))
    return sources


def _memo(
    coverage: Coverage, reading: ModelReading | None, rng: np.random.Generator
) -> MemoDrawing:
    """Return MEMO's loop over reduced models: parts of the user's, or models that are drawn."""
    graphs = NodeGraphs({} if reading is None else reading.given)
    context = MutationContext(coverage, graphs, rng)
    seeds = drawn_seeds(DRAWN_SEEDS, context) if reading is None else model_seeds(reading.draft)
    return MemoDrawing([reduced(one, graphs) for one in seeds], coverage, graphs, rng)
