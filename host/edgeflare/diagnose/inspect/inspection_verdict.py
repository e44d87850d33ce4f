"""The verdict of an inspection: whether one channel has the margin's error, and which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from edgeflare.diagnose.inspect.behaviour_block import CHOOSING, HELD_OUT, UnitLayer, unit_at
from edgeflare.diagnose.inspect.behaviour_scores import Matrix, is_beyond, level_of
from edgeflare.diagnose.inspect.error_shares import (
    ShareInterval,
    error_shares,
    first_to_blame,
    is_to_blame,
    permuted_shares,
    share_interval,
)
from edgeflare.diagnose.inspect.inspection_result import InspectionVerdict
from edgeflare.diagnose.inspect.kept_inputs import KeptInputs
from edgeflare.diagnose.inspect.unit_measures import Orders

NOT_ASKED: Final = InspectionVerdict(
    "none", "no verdict: it needs the behaviour error-gradient, which was left out"
)


def blamed(
    kept: KeptInputs, chosen: Matrix, held_out: Matrix, layers: Sequence[UnitLayer]
) -> tuple[int, ShareInterval]:
    """Return the unit that the verdict is about, and its share on the held-out half.

    Args:
        kept: the inputs.
        chosen: (m, U), the contributions on the half to choose units on.
        held_out: (n, U), on the other.
        layers: in execution order.

    """
    one, other = kept.half(CHOOSING), kept.half(HELD_OUT)
    unit = first_to_blame(error_shares(chosen, one.margin_errors), layers)
    return unit, share_interval(held_out[:, unit], other.margin_errors, other.groups)


def verdict_on(
    kept: KeptInputs,
    chosen: Matrix,
    held_out: Matrix,
    layers: Sequence[UnitLayer],
    orders: Orders,
) -> InspectionVerdict:
    """Return the verdict; arguments as of `blamed`, and (P, n) orders of the inputs held out.

    A channel is blamed if the lower limit of its share's interval is beyond the threshold: a
    healthy network's top channel may be at half of it, and noise does the rest.
    """
    unit, share = blamed(kept, chosen, held_out, layers)
    errors = kept.half(HELD_OUT).margin_errors
    extremes = [
        np.abs(permuted_shares(held_out, errors, some)).max(axis=1)
        for some in np.array_split(orders, max(len(orders) // 100, 1))
    ]
    level = level_of(np.concatenate(extremes))
    where = unit_at(layers, unit)
    layer = layers[where.layer]
    said = f"channel {where.channel} of {layer}"
    if not is_beyond(share.share, level) or level == 0.0:
        sentence = "nothing: no channel has more of the margin's error than chance gives"
        return InspectionVerdict("nothing", sentence, where, share, level)
    if is_to_blame(share.low, layer):
        sentence = f"{said} has {share.share:.0%} of the margin's error"
        return InspectionVerdict("channel", sentence, where, share, level)
    sentence = f"diffuse: the top channel, {where.channel} of {layer}, has {share.share:.0%}"
    return InspectionVerdict("diffuse", sentence, where, share, level)
