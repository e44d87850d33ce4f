"""The inputs that a model is fitted with: seeds, and images near the boundary between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.arm import Arm
from edgeflare.diagnose.near_boundary import near_boundary_inputs
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging.judged_inputs import original_label_of
from edgeflare.repair.judging.seed_split import SeedSplit

FIT_INPUTS = 400
"""Inputs to fit with at most, half of them seeds, half of them near the original's boundary. The
time and the memory that fitting takes grow with them."""


def fit_inputs(
    opened: OpenedPair, labels: NDArray[np.int64], split: SeedSplit, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], list[int]]:
    """Return seeds to fit with and inputs near the boundary between them, and their seeds' ids.

    They are drawn whatever the method, so that all methods are judged by the same inputs.

    Args:
        opened: the pair.
        labels: of all its seeds, as `known_labels` returns them.
        split: the parts of the seeds.
        rng: the generator of all that is drawn.

    Returns:
        images: (n, H, W, C) uint8.
        ids: the n ids of their seeds.

    Raises:
        UserError: the original gives the known label to seeds of fewer than two labels.
        InfrastructureError: a worker process is lost for good.

    """
    images = opened.seeds.inputs[split.fit]
    some = np.sort(rng.permutation(len(images))[: FIT_INPUTS // 2])
    near = near_boundary_inputs(
        images, labels[split.fit], original_label_of(opened), FIT_INPUTS // 2, rng
    )
    ids = np.array(opened.seeds.seed_ids, np.int64)[split.fit]
    fitted = np.concatenate([images[some], near.wide])
    return fitted, ids[np.concatenate([some, near.rows])].tolist()


def network_to_fit(
    opened: OpenedPair, original: bytes, images: NDArray[np.uint8], ids: Sequence[int]
) -> QuantizedNetwork:
    """Return the network to fit, with the inputs to fit it with.

    Args:
        opened: the pair.
        original: the original's `.tflite` file.
        images: (n, H, W, C), as `fit_inputs` returns them.
        ids: the seed that each was made from.

    """
    rows, original_rows = (opened.panel.rows(arm, images, ids) for arm in (Arm.TWIN, Arm.ORIGINAL))
    content = read_model_file(opened.pair.compressed)
    return QuantizedNetwork(content, original, rows, original_rows.astype(np.float32))
