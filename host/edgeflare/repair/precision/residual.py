"""The residual of a compressed model as it came: the error that each of its blocks adds itself.

It takes seconds, so that each repair has it: the block with the greatest one is to blame.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edgeflare.errors import UserError
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.precision.block_errors import operator_errors
from edgeflare.repair.precision.blocks import blocks_of, operators_of
from edgeflare.repair.precision.localization import blamed, residual_scores

INPUTS = 64
"""Inputs by which operators are compared with the original's, at equal distances of those to fit
with."""


def residual(network: QuantizedNetwork) -> dict[str, Any] | None:
    """Return the blocks, their scores and which one is to blame, as plain JSON values.

    Args:
        network: as it came.

    Returns:
        `blocks`, `scores` by the name of the block, and the name of the one that is `blamed`, None
        where no block adds an error; None where the operators cannot be compared with the
        original's.

    Raises:
        InfrastructureError: no worker process can be started, or it is lost.

    """
    stride = max(1, len(network.rows) // INPUTS)
    few = replace(
        network, rows=network.rows[::stride], original_rows=network.original_rows[::stride]
    )
    try:
        blocks = blocks_of(network)
        scores = residual_scores(blocks, operator_errors(few, operators_of(blocks)))
    except UserError:  # a repair does not need it
        return None
    worst = blamed(blocks, scores)
    return {
        "blocks": [one.to_json() for one in blocks],
        "scores": scores,
        "blamed": None if worst is None else worst.name,
    }
