"""Which block of a compressed model to blame, three ways; each gives every block a score.

*Residual*: the error that the operators of the block add themselves, by the signal. It takes
seconds, so that each repair has it.

*Spectrum*: ArchRepair (Qi et al., "ArchRepair: Block-Level Architecture-Oriented Repairing for Deep
Neural Networks", TOSEM 2023, §3.2) counts for each channel on how many failing and passing inputs
it is active, N_am and N_ac, or not, N_nm and N_nc. Its suspiciousness is Tarantula's

    s = [N_am / (N_am + N_nm)] / ([N_am / (N_am + N_nm)] + [N_ac / (N_ac + N_nc)]),

times the normalized distance of its gradient g from the mean of the blocks' means Ḡ,
|g - Ḡ| / max |g - Ḡ|. The block that has most of the k most suspicious channels is blamed.

*Promotion*: each block alone is computed in float, and the error of the decisions measured.

Differences from the original: failing inputs are those that deviate, passing ones those that do
not. In the place of the gradient stands the error that the channel adds itself on the failing
inputs, by the block's signal, and only what is above the mean counts, since a small error is not
suspicious. A block counts by its most suspicious channels' sum over the number of all its channels:
by their number alone the widest layer is blamed, and layers of one network have 6 to 120 channels.
A channel is active where its mean over the positions is above its median over all inputs, since the
paper gives no threshold and most are above zero on all inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.precision.blocks import (
    OperatorErrors,
    blocks_of,
    operator_errors,
    operators_of,
)
from edgeflare.repair.precision.precision_promotion import Measure
from edgeflare.repair.precision_details import Block, Residual

Real = NDArray[np.float64]

SUSPICIOUS_SHARE = 0.1
"""Share of all channels that are the most suspicious ones, k; ArchRepair takes 10 to 150."""

LEAST_SUSPICIOUS = 10

RESIDUAL_INPUTS = 64
"""Inputs by which operators are compared with the original's for the residual, at equal distances
of those to fit with."""


def residual(network: QuantizedNetwork) -> Residual | None:
    """Return the blocks of a network as it came, and the error that each adds itself.

    Returns:
        None where the operators cannot be compared with the original's.

    """
    stride = max(1, len(network.rows) // RESIDUAL_INPUTS)
    few = replace(
        network, rows=network.rows[::stride], original_rows=network.original_rows[::stride]
    )
    try:
        blocks = blocks_of(network)
        scores = residual_scores(blocks, operator_errors(few, operators_of(blocks)))
    except UserError:  # a repair does not need it
        return None
    worst = blamed(blocks, scores)
    return Residual(blocks, scores, None if worst is None else worst.name)


def residual_scores(
    blocks: Sequence[Block], errors: Mapping[int, OperatorErrors]
) -> dict[str, float]:
    """Return the error that each block adds itself, by its signal: the root of the summed squares.

    Args:
        blocks: the blocks.
        errors: errors of their operators.

    Returns:
        A score for each block's name; the block with the greatest one is to blame.

    """
    return {
        block.name: float(
            np.sqrt(
                sum(
                    float((errors[operator].relative ** 2).mean())
                    for operator in block.operators
                    if operator in errors
                )
            )
        )
        for block in blocks
    }


def spectrum_scores(
    blocks: Sequence[Block], errors: Mapping[int, OperatorErrors], failing: NDArray[np.bool_]
) -> dict[str, float]:
    """Return how suspicious the channels of each block are, by the number of its channels.

    Only the k most suspicious ones of the network count, a tenth of all and 10 at least. All scores
    are 0 where no input fails, or all do.

    Args:
        blocks: the blocks.
        errors: errors of their operators; the first one's of a block count.
        failing: (n,), whether the compressed model deviates on an input.

    Returns:
        A score from 0 to 1 for each block's name; the block with the greatest one is to blame.

    """
    known = [block for block in blocks if block.operators[0] in errors]
    scores = {block.name: 0.0 for block in blocks}
    if failing.all() or not failing.any() or not known:
        return scores
    of = [errors[block.operators[0]] for block in known]
    gradients = [measured.relative[failing].mean(axis=0) for measured in of]
    mean = np.mean([gradient.mean() for gradient in gradients])
    above = np.maximum(np.concatenate(gradients) - mean, 0.0)
    suspicious = np.concatenate([tarantula(measured.activation, failing) for measured in of])
    suspicious *= above / (above.max() or 1.0)
    owner = np.repeat(np.arange(len(known)), [len(gradient) for gradient in gradients])
    count = max(LEAST_SUSPICIOUS, round(SUSPICIOUS_SHARE * len(owner)))
    most = np.argsort(-suspicious, kind="stable")[:count]
    for at, block in enumerate(known):
        scores[block.name] = float(suspicious[most[owner[most] == at]].sum() / (owner == at).sum())
    return scores


def tarantula(activation: Real, failing: NDArray[np.bool_]) -> Real:
    """Return the suspiciousness of channels, 0 to 1: (channels,).

    Args:
        activation: mean activation by input and channel, (n, channels).
        failing: (n,), some of them and not all.

    """
    active = activation > np.median(activation, axis=0)
    of_failing, of_passing = active[failing].mean(axis=0), active[~failing].mean(axis=0)
    both = of_failing + of_passing
    return np.asarray(np.divide(of_failing, both, out=np.zeros_like(both), where=both > 0))


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


def blamed(blocks: Sequence[Block], scores: Mapping[str, float]) -> Block | None:
    """Return the block with the greatest score; None where no score is above 0."""
    first = ranked(blocks, scores)[0]
    return first if scores[first.name] > 0 else None
