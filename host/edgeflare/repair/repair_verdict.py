"""The verdict on the chosen candidate: whether it is written, and why."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.repair.candidate_choice import mended_and_broken, surely_gains
from edgeflare.repair.judging.judged_inputs import FRESH
from edgeflare.repair.judging.judgement import SCORED, Judgement
from edgeflare.repair.repair_outcome import OnDevice


def verdict(judgement: Judgement, devices: Sequence[OnDevice]) -> tuple[bool, str]:
    """Say whether the chosen candidate is to be written, and why.

    Args:
        judgement: on inputs that nothing was chosen on.
        devices: the same inputs on each device.

    """
    mended, broken = mended_and_broken(judgement)
    before, after = (
        sum(figures[name].deviating for name in SCORED)
        for figures in (judgement.before, judgement.after)
    )
    said = f"{before:,} held-out inputs near the boundary deviate before and {after:,} after"
    if not surely_gains(judgement):
        return False, (
            f"the chosen candidate does not surely gain on held-out inputs: {said}, {mended:,} are"
            f" mended and {broken:,} broken"
        )
    if FRESH in judgement.after:
        old, new = (one[FRESH].deviating for one in (judgement.before, judgement.after))
        if new > old:
            return False, f"on fresh data {new:,} inputs would deviate instead of {old:,}"
    for one in devices:
        lost, failed = (
            sum(figures.failed for figures in side.values()) for side in (one.before, one.after)
        )
        if failed > lost:
            return False, f"on {one.device} it gives no answer on {failed - lost:,} held-out inputs"
        old, new = (
            sum(figures.deviating for figures in side.values()) for side in (one.before, one.after)
        )
        if new >= old:
            return (
                False,
                f"on {one.device} {new:,} held-out inputs would deviate instead of {old:,}",
            )
    return True, said
