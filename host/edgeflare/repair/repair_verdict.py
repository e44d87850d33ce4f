"""The verdict on a repair: whether the chosen candidate is written, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from edgeflare.repair.judging.judgement import Judgement
from edgeflare.repair.repair_document import OnDevice
from edgeflare.statistics.binomial import sign_test

_SURE: Final = 0.05
"""The p value below which more inputs are mended than broken not by chance."""


def verdict(judgement: Judgement, on_devices: Sequence[OnDevice]) -> tuple[bool, str]:
    """Say whether the chosen candidate is to be written, and why.

    Args:
        judgement: on inputs that nothing was chosen on.
        on_devices: the same inputs on each device.

    """
    mended, broken = mended_and_broken(judgement)
    before = sum(one.before.deviating for one in judgement.scored)
    after = sum(one.after.deviating for one in judgement.scored)
    said = f"{before:,} held-out inputs near the boundary deviate before and {after:,} after"
    if not surely_gains(judgement):
        return False, (
            f"the chosen candidate does not surely gain on held-out inputs: {said}, {mended:,} are"
            f" mended and {broken:,} broken"
        )
    if (fresh := judgement.fresh) is not None:
        old, new = fresh.before.deviating, fresh.after.deviating
        if new > old:
            return False, f"on fresh data {new:,} inputs would deviate instead of {old:,}"
    for device in on_devices:
        lost = sum(one.before.failed for one in device.sets.values())
        failed = sum(one.after.failed for one in device.sets.values())
        where = f"on {device.device}"
        if failed > lost:
            return False, f"{where} it gives no answer on {failed - lost:,} held-out inputs"
        old, new = device.deviating
        if new >= old:
            return False, f"{where} {new:,} held-out inputs would deviate instead of {old:,}"
    return True, said


def surely_gains(judgement: Judgement) -> bool:
    """Whether a candidate mends more of the scored inputs than it breaks, and not by chance."""
    mended, broken = mended_and_broken(judgement)
    return judgement.score < 1.0 and mended > broken and sign_test(mended, broken) < _SURE


def mended_and_broken(judgement: Judgement) -> tuple[int, int]:
    """Return how many inputs of the scored sets are mended, and broken."""
    sets = judgement.scored
    return sum(one.mended for one in sets), sum(one.broken for one in sets)
