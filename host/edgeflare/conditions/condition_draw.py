"""An input under a condition: it depends on these two, the severity and the run seed alone."""

from __future__ import annotations

import zlib

import numpy as np

from edgeflare.conditions.condition import Condition
from edgeflare.core.input_space import Input, InputSpace


def changed_input(
    condition: Condition, one: Input, severity: float, rng_seed: int, space: InputSpace
) -> Input:
    """Return an input under a condition, within what its domain allows.

    It is the same whatever other inputs, conditions and severities there are, and in which order.
    All severities share what is drawn, so that a rate against severity does not jump by chance.

    Args:
        condition: of the input's domain.
        one: the input; it stays as it was.
        severity: from 1 to 5.
        rng_seed: of the run, 0 or more.
        space: of the domain, whose limits are held.

    Raises:
        UserError: the condition returned something of another shape or dtype.

    """
    shape = ",".join(map(str, one.shape)).encode()
    content = zlib.crc32(one.tobytes(), zlib.crc32(shape))
    named = zlib.crc32(condition.name.encode())
    rng = np.random.default_rng(np.random.SeedSequence([rng_seed, content, named]))
    return space.clipped(condition(one, severity, rng))
