"""Operands of a comparison of which some values are equal, as those that are drawn hardly are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeflare.conform.specification.operator_specification import Operand


def make_values_equal(operands: Sequence[Operand]) -> None:
    """Make every other value of one operand, in place, what it is compared with.

    Two floats that are drawn are hardly ever equal, so that kernels that compare the wrong ones
    would answer rightly.
    Quantized values are left as they are: several steps of one operand are one of the other's.

    Args:
        operands: the two, broadcast with each other; the larger one that is no constant is changed.

    """
    changeable = [one for one in operands if one.value.values is None]
    if not changeable or changeable[0].value.quantization is not None:
        return
    changed = max(changeable, key=lambda one: one.raw.size)
    first, second = operands
    other = second if changed is first else first
    shape = np.broadcast_shapes(first.raw.shape, second.raw.shape)
    if 0 in shape:
        return
    own = (1,) * (len(shape) - changed.raw.ndim) + changed.raw.shape
    compared = np.broadcast_to(other.raw, shape)
    changed.raw.flat[1::2] = compared[tuple(map(slice, own))].flat[1::2]
    if changed.raw.size == 1:
        changed.raw[...] = compared.flat[-1]
